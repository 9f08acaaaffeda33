"""kill -9 a training ten times at random moments; the final weights must be bit-equal to those of
a training that nobody disturbed.

    python benchmarks/soak.py [--kills 10] [--seed 0]
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from itr_study.atomic import read_json, sha256_file

CONFIG = """
dataset = "scenes"
images = "detector"
tokens = "words"
model = "vsepp"
model_arguments = {size = 96, word_size = 48}
objective = [{loss = "triplet_hardest"}]
data_options = {train = 200, dev = 40, test = 40}
[settings]
epochs = 40
batch_size = 64
"""


def start(config: Path, home: Path) -> subprocess.Popen:
    """A training in a process of its own that saves every half second."""
    command = [sys.executable, "-m", "itr_study.cli", "train", str(config), "--save-seconds", "0.5",
               "--device", "cpu"]
    return subprocess.Popen(command, env={**os.environ, "ITR_STUDY_HOME": str(home)},
                            stdout=subprocess.DEVNULL)


def wait_until_training(home: Path, process: subprocess.Popen) -> None:
    """Return when this process has said that it runs."""
    while process.poll() is None:
        for status in home.glob("runs/*/status.json"):
            told = read_json(status)
            if told["pid"] == process.pid and told["state"] == "running":
                return
        time.sleep(0.02)


def finished_weights(home: Path) -> str:
    (weights,) = home.glob("runs/*/weights.safetensors")
    return sha256_file(weights)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args()
    chance, folder = random.Random(wanted.seed), Path(tempfile.mkdtemp(prefix="itr_study-soak-"))
    (folder / "config.toml").write_text(CONFIG)
    start_time = time.monotonic()
    if start(folder / "config.toml", folder / "calm").wait() != 0:
        return 1
    calm = time.monotonic() - start_time
    print(f"undisturbed: {calm:.0f} s, weights {finished_weights(folder / 'calm')[:16]}")
    kills = 0
    while kills < wanted.kills:
        process = start(folder / "config.toml", folder / "soaked")
        wait_until_training(folder / "soaked", process)
        time.sleep(chance.uniform(0.0, calm / 12))
        if process.poll() is not None:
            print(f"finished after {kills} kills only; train longer")
            return 1
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        saved = sorted(p.name for p in folder.glob("soaked/runs/*/checkpoints/*"))
        print(f"kill {kills}: last checkpoint {saved[-1] if saved else 'none'}", flush=True)
    start(folder / "config.toml", folder / "soaked").wait()
    equal = finished_weights(folder / "soaked") == finished_weights(folder / "calm")
    print(f"after {kills} kills: weights are {'bit-equal' if equal else 'DIFFERENT'}")
    if equal:
        shutil.rmtree(folder)
    return int(not equal)


if __name__ == "__main__":
    sys.exit(main())
