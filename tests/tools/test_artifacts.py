import asyncio
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import StorageError
from tools.artifacts import ArtifactStore, FileArtifacts, MemoryArtifacts


@pytest.fixture(params=["memory", "files"])
def store(request, tmp_path) -> ArtifactStore:
    return MemoryArtifacts() if request.param == "memory" else FileArtifacts(tmp_path / "artifacts")


async def test_a_text_comes_back_by_its_reference(store):
    ref = await store.put("定价 {x} 😀\n" * 1000)
    assert ref.startswith("sha256:")
    assert len(ref) == 71
    assert await store.get(ref) == "定价 {x} 😀\n" * 1000


async def test_the_same_text_has_one_reference(store):
    assert await store.put("a") == await store.put("a") != await store.put("b")


async def test_text_that_is_no_valid_unicode_is_stored_cleaned(store):
    assert await store.get(await store.put("a\ud800\0b")) == "a\ufffdb"


@pytest.mark.parametrize(
    "ref",
    [
        "",
        "sha256:",
        "x",
        "sha256:../../etc/passwd",
        "sha256:" + "A" * 64,
        "md5:" + "a" * 64,
        "sha256:" + "a" * 63 + "/",
        "sha256:" + "a" * 64,
        "sha256:" + "a" * 64 + "\n",
        "sha256:" + "a" * 64 + "/..",
    ],
)
async def test_an_unknown_or_crooked_reference_is_a_key_error(store, ref):
    await store.put("something")
    with pytest.raises(KeyError):
        await store.get(ref)


async def test_a_second_process_finds_the_text(tmp_path):
    ref = await FileArtifacts(tmp_path).put("kept")
    assert await FileArtifacts(tmp_path).get(ref) == "kept"


async def test_many_writers_of_one_text_leave_one_whole_file(tmp_path):
    stores = [FileArtifacts(tmp_path) for _ in range(8)]
    refs = await asyncio.gather(*(store.put("x" * 100_000) for store in stores))
    assert len(set(refs)) == 1
    assert [len(files) for _, _, files in os.walk(tmp_path) if files] == [1]


async def test_a_half_written_file_is_written_again_and_a_damaged_one_is_named(tmp_path):
    store = FileArtifacts(tmp_path)
    ref = await store.put("complete")
    (path,) = (path for path in tmp_path.rglob("*") if path.is_file())
    path.write_text("comp")
    with pytest.raises(StorageError, match="damaged"):
        await store.get(ref)
    await store.put("complete")
    assert await store.get(ref) == "complete"


async def test_a_folder_that_cannot_be_written_is_one_readable_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="cannot store"):
        await FileArtifacts(tmp_path / "file").put("x")


@given(st.text(st.characters(codec=None), max_size=50))
def test_any_text_can_be_stored(text):
    async def there_and_back() -> None:
        store = MemoryArtifacts()
        (await store.get(await store.put(text))).encode()

    asyncio.run(there_and_back())
