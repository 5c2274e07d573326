"""Where byte-level tokens end, counted in bytes."""


def byte_alphabet() -> dict[str, int]:
    """The character that stands for each byte in a byte-level vocabulary (GPT-2's own table)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable}
    return alphabet | {chr(256 + i): byte for i, byte in enumerate(others)}


def token_ends(tokens: list[str], text: str) -> list[int]:
    """Characters read when each token ends, or -1 where the bytes read end inside one."""
    alphabet = byte_alphabet()
    whole = text.encode()
    boundaries = {len(text[:i].encode()): i for i in range(len(text) + 1)}
    ends, read = [], 0
    for token in tokens:
        piece = bytes(alphabet[symbol] for symbol in token)
        assert whole[read : read + len(piece)] == piece
        read += len(piece)
        ends.append(boundaries.get(read, -1))
    assert read == len(whole)
    return ends
