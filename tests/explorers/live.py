"""A kernel as JupyterLab starts one, without a browser: what it sends when a cell runs."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from jupyter_client.manager import start_new_kernel

SECONDS = 120.0  # a loaded machine imports slowly


class Live:
    """Runs cells and hears what a front end would."""

    def __init__(self, client):
        self.client = client

    def run(self, cell: str) -> list[dict]:
        """Messages of the kernel while the cell runs. Raises: AssertionError if the cell does."""
        heard = []
        reply = self.client.execute_interactive(cell, timeout=SECONDS, output_hook=heard.append)
        assert reply["content"]["status"] == "ok", reply["content"]
        return heard


def captured_images(messages: list[dict]) -> list[str]:
    """The pictures (PNG, base64) that an Output widget captured: sent between the message that
    tells it whose output to take and the one that ends this."""
    capturing, images = False, []
    for message in messages:
        data = message["content"].get("data", {})
        state = data.get("state", {}) if message["msg_type"] == "comm_msg" else {}
        if "msg_id" in state:
            capturing = state["msg_id"] == message["parent_header"]["msg_id"]
        elif capturing and message["msg_type"] == "display_data" and "image/png" in data:
            images.append(data["image/png"])
    return images


@contextmanager
def live_kernel() -> Iterator[Live]:
    """A kernel that somebody watches; it ends with the block."""
    environment = {k: v for k, v in os.environ.items() if k != "ITR_STUDY_HEADLESS"}
    manager, client = start_new_kernel(startup_timeout=SECONDS, env=environment)
    try:
        yield Live(client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
