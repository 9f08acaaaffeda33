"""What holds for every test: an empty store of its own, one thread, real data only where given."""

import os
import shutil
import signal
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest

# Set before torch is imported anywhere; workers and kernels inherit it.
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
# A shell that starts this in the background ignores Ctrl-C for it, and Python then raises nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)

# One store a session: made by the first process, inherited by the workers of pytest-xdist.
OWNER = "PYTEST_XDIST_WORKER" not in os.environ
if OWNER:
    os.environ["ITR_STUDY_HOME"] = tempfile.mkdtemp(prefix="itr_study-tests-")


def pytest_unconfigure(config: pytest.Config) -> None:
    if OWNER:
        shutil.rmtree(os.environ["ITR_STUDY_HOME"], ignore_errors=True)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    """With ITR_REQUIRE_DATA=1 a test skipped for want of ITR_DATA has failed."""
    report = (yield).get_result()
    if report.skipped and os.environ.get("ITR_REQUIRE_DATA") == "1":
        reason = str(report.longrepr)
        if "ITR_DATA" in reason:
            report.outcome = "failed"
            report.longrepr = f"ITR_REQUIRE_DATA=1, but a test of real data was skipped: {reason}"


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The root of the real data sets; without one the test is skipped, visibly."""
    root = os.environ.get("ITR_DATA")
    if not root:
        pytest.skip("set ITR_DATA to a folder that holds flickr8k/ to run tests on real data")
    if not Path(root).is_dir():
        pytest.fail(f"ITR_DATA={root} is no folder")
    return Path(root).resolve()


@pytest.fixture
def evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Evidence of this test alone, of which there is none yet."""
    monkeypatch.setenv("ITR_STUDY_EVIDENCE", str(tmp_path / "evidence"))
    return tmp_path / "evidence"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store of this test alone."""
    monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path / "store"))
    return tmp_path / "store"


def no_browser(reason: str) -> None:
    (pytest.fail if os.environ.get("ITR_REQUIRE_BROWSER") == "1" else pytest.skip)(reason)


@pytest.fixture
def page():
    """A page of Chromium; afterwards no error was logged and no request left this machine."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not program:
        no_browser("no chromium: apt install chromium, or set CHROMIUM")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        no_browser("no playwright: pip install playwright")
    wrong = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(120_000)
        page.on("console", lambda m: wrong.append(f"{m.text} ({m.location.get('url')})")
                if m.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: wrong.append(request.url) if urlsplit(
            request.url).hostname not in (None, "127.0.0.1") else None)
        yield page
        browser.close()
    assert not wrong
