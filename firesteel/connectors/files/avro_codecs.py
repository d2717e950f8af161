"""How blocks of Avro files are compressed, with what Python and Arrow have: no library of its own is needed."""

from __future__ import annotations

import bz2
import lzma
import zlib

__all__ = ["AVRO_CODECS", "compressed", "decompressed"]

AVRO_CODECS = ("null", "deflate", "snappy", "bzip2", "xz", "zstandard")
_CHECKSUM = 4


def compressed(data: bytes, codec: str) -> bytes:
    """A block's bytes as a file has them.

    >>> decompressed(compressed(b"abc" * 100, "snappy"), "snappy") == b"abc" * 100
    True
    """
    if codec == "deflate":
        packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        return packer.compress(data) + packer.flush()
    if codec == "snappy":
        # The checksum of what was there before it was compressed follows.
        return _packed(data, "snappy") + zlib.crc32(data).to_bytes(_CHECKSUM, "big")
    if codec == "bzip2":
        return bz2.compress(data)
    if codec == "xz":
        return lzma.compress(data)
    if codec == "zstandard":
        return _packed(data, "zstd")
    return data


def decompressed(data: bytes, codec: str) -> bytes:
    """What :func:`compressed` was given."""
    if codec == "deflate":
        return zlib.decompress(data, wbits=-zlib.MAX_WBITS)
    if codec == "snappy":
        return _unsnapped(data)
    if codec == "bzip2":
        return bz2.decompress(data)
    if codec == "xz":
        return lzma.decompress(data)
    if codec == "zstandard":
        import pyarrow as pa

        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            return bytes(stream.read())
    if codec != "null":
        raise ValueError(f"its codec is {codec!r}, known are {', '.join(AVRO_CODECS)}")
    return data


def _packed(data: bytes, codec: str) -> bytes:
    # Here and elsewhere, not at the top: whoever only builds a program need not wait until Arrow is loaded.
    import pyarrow as pa

    return bytes(pa.compress(data, codec, asbytes=True))


def _unsnapped(data: bytes) -> bytes:
    import pyarrow as pa

    content, checksum = data[:-_CHECKSUM], data[-_CHECKSUM:]
    found = bytes(pa.decompress(content, _snappy_size(content), "snappy", asbytes=True))
    if zlib.crc32(found).to_bytes(_CHECKSUM, "big") != checksum:
        raise ValueError("the checksum of a block is not that of its content")
    return found


def _snappy_size(content: bytes) -> int:
    """The first number: how long the content is, seven bits a byte."""
    size = 0
    for place, byte in enumerate(content[:5]):
        size |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return size
    raise ValueError("a block does not say how long it is")
