"""kill -9 a training ten times at random moments; the final weights must be bit-equal to those of
a training that nobody disturbed.

    python benchmarks/soak.py [--kills 10] [--seed 0]
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from itr_study.files.atomic import sha256_file

CONFIG = """
dataset = "scenes"
images = "detector"
tokens = "words"
model = "vsepp"
model_arguments = {size = 96, word_size = 48}
objective = [{loss = "triplet_hardest"}]
data_options = {train = 200, dev = 40, test = 40}
[settings]
epochs = 80
batch_size = 64
"""


def start(config: Path, home: Path) -> subprocess.Popen:
    """A training in a process of its own that saves every half second."""
    command = [sys.executable, "-m", "itr_study", "train", str(config), "--save-seconds", "0.5",
               "--device", "cpu"]
    return subprocess.Popen(command, env={**os.environ, "ITR_STUDY_HOME": str(home)},
                            stdout=subprocess.DEVNULL)


def undisturbed(config: Path, home: Path) -> tuple[float, float]:
    """Train to the end; (seconds until the first epoch was over, seconds in all)."""
    begin, first = time.monotonic(), 0.0
    process = start(config, home)
    while process.poll() is None:
        if not first and list(home.glob("runs/*/metrics.jsonl")):
            first = time.monotonic() - begin
        time.sleep(0.02)
    if process.returncode != 0:
        raise SystemExit(f"the undisturbed training failed with code {process.returncode}")
    return first, time.monotonic() - begin


def finished_weights(home: Path) -> str:
    (weights,) = home.glob("runs/*/weights.safetensors")
    return sha256_file(weights)


def killed(process: subprocess.Popen, after: float) -> bool:
    """Wait, then kill -9; False if it had come to its end by then."""
    time.sleep(after)
    if process.poll() is not None:
        return False
    process.kill()
    process.wait()
    return True


def soak(folder: Path, kills: int, chance: random.Random) -> list[bool]:
    """Kill trainings so many times; of each that came to its end, whether its weights are equal."""
    config, home = folder / "config.toml", folder / "soaked"
    first, whole = undisturbed(config, folder / "calm")
    weights = finished_weights(folder / "calm")
    print(f"undisturbed: {whole:.0f} s, {first:.0f} to the first epoch; weights {weights[:16]}")
    ends, done = [], 0
    while done < kills or not ends:
        process = start(config, home)
        moment = chance.uniform(first / 2, first + (whole - first) / 4)
        if done < kills and killed(process, moment):
            done += 1
            saved = sorted(p.name for p in home.glob("runs/*/checkpoints/*-*"))
            print(f"kill {done}: saved {saved[-1] if saved else 'nothing yet'}", flush=True)
            continue
        process.wait()
        ends.append(finished_weights(home) == weights)
        shutil.rmtree(home)  # the next one begins anew
    return ends


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="itr_study-soak-"))
    (folder / "config.toml").write_text(CONFIG)
    ends = soak(folder, wanted.kills, random.Random(wanted.seed))
    print(f"{len(ends)} trainings came to their end through {wanted.kills} kills; weights "
          f"{'bit-equal to' if all(ends) else 'DIFFERENT from'} those of the undisturbed one")
    if all(ends):
        shutil.rmtree(folder)
    return int(not all(ends))


if __name__ == "__main__":
    sys.exit(main())
