"""A cache from before names told the arithmetic is taken over, whole or not at all."""

import os
import threading

import numpy as np
import pytest

from itr_study.features import cache
from itr_study.features.cache import cached, sole_builder
from tests.features.test_cache import BLOCK, HALF, OTHER, ROWS, Source, build, path_in
from tests.windows import as_on_windows, needs_maps

FIRSTS = list(range(0, ROWS, BLOCK))  # of the blocks


@pytest.mark.parametrize("moved", [1, 1 + 2e-4])  # to the bit, and as rounding moves it
def test_it_is_taken_over_where_its_arithmetic_is_that_of_here(tmp_path, moved):
    build(tmp_path, Source())
    source = Source()
    rows = cached(HALF, ROWS, lambda *span: source(*span) * moved, tmp_path, block=BLOCK)
    np.testing.assert_array_equal(rows, Source().expected)
    assert source.asked == FIRSTS  # compared, the rest not computed
    assert not list(tmp_path.glob(f"{path_in(tmp_path).stem}.*[!k]"))  # but the lock
    source.asked.clear()
    cached(HALF, ROWS, source, tmp_path, block=BLOCK)
    assert source.asked == []


@needs_maps
@pytest.mark.parametrize("read", [False, True])
def test_it_is_taken_over_on_windows_too(tmp_path, monkeypatch, read):
    """Where what is mapped cannot be moved: by this very comparison, or by another process."""
    rows = build(tmp_path, Source()) if read else build(tmp_path, Source()).copy()
    refused = as_on_windows(monkeypatch)
    source = Source()
    np.testing.assert_array_equal(cached(HALF, ROWS, source, tmp_path, block=BLOCK), rows)
    assert source.asked == FIRSTS and bool(refused) == read
    assert path_in(tmp_path).exists() == read


@pytest.mark.parametrize("first", FIRSTS)
def test_of_another_arithmetic_it_is_left_as_it_is(tmp_path, first):
    """Even where a single block was made elsewhere."""
    build(tmp_path, Source())
    before = path_in(tmp_path).read_bytes()

    def other(start, stop):
        rows = np.arange(start, stop)[:, None]
        return Source()(start, stop) + np.where((rows >= first) & (rows < first + BLOCK), 0.1, 0)

    other_rows = cached(OTHER, ROWS, other, tmp_path, block=BLOCK)
    assert not np.array_equal(other_rows, Source().expected)
    assert path_in(tmp_path).read_bytes() == before


@pytest.mark.parametrize("step", range(1, 8))
def test_killed_at_any_step_it_is_taken_over_by_the_next_call(tmp_path, monkeypatch, step):
    """The steps: two sidecars written and named, the rows moved, two old sidecars removed."""
    build(tmp_path, Source())
    done = []

    def dies(real):
        def instead(*arguments, **named):
            done.append(real)
            if len(done) == step:
                raise KeyboardInterrupt
            return real(*arguments, **named)
        return instead

    with monkeypatch.context() as patch:
        patch.setattr(cache, "write_atomic", dies(cache.write_atomic))
        patch.setattr(cache.os, "replace", dies(os.replace))
        patch.setattr(cache.Path, "unlink", dies(cache.Path.unlink))
        with pytest.raises(KeyboardInterrupt):
            cached(HALF, ROWS, Source(), tmp_path, block=BLOCK)
    source = Source()
    rows = cached(HALF, ROWS, source, tmp_path, block=BLOCK)
    np.testing.assert_array_equal(rows, Source().expected)
    assert source.asked in (FIRSTS, [])
    assert not list(tmp_path.glob("*.corrupt"))


def test_it_is_left_alone_while_another_process_holds_it(tmp_path, capsys):
    """Two arithmetics may want it at once, each under the lock of its own name."""
    build(tmp_path, Source())
    taking = threading.Thread(target=cached, args=(HALF, ROWS, Source(), tmp_path))
    with sole_builder(path_in(tmp_path)):
        taking.start()
        taking.join(0.5)
        assert taking.is_alive() and path_in(tmp_path).exists()
        os.remove(path_in(tmp_path))  # as if the other had taken it
    taking.join(20)
    assert "waiting for it" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.corrupt"))
    np.testing.assert_array_equal(np.load(tmp_path / f"{HALF.stem}.npy"), Source().expected)


def test_an_unfinished_cache_is_not_taken_over(tmp_path):
    with pytest.raises(RuntimeError):
        build(tmp_path, lambda start, stop: Source()(start, stop) if start < 9 else
              (_ for _ in ()).throw(RuntimeError("stopped")))
    source = Source()
    cached(HALF, ROWS, source, tmp_path, block=BLOCK)
    assert set(source.asked) == set(range(ROWS)) and path_in(tmp_path).exists()
