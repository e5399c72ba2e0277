"""Damages bytes as disks, copies and people do."""
HOSTILE = (b"-1", b"0", b"1e308", b"nan", b"99999999999999999999", b"4294967296", b"\x1b[31m", b"\x07", b"\xff\xfe", b"\"", b"{", b"]",
           b"\n", b",", b"\xc2\x9b", b"../", b"\\u0000", b"null")


def place(random, size):
    """Headers and beginnings decide more than the rest: half of all places are among the first bytes."""
    return random.randrange(min(size, 2048)) if random.random() < 0.5 else random.randrange(size)


def flip(random, data):
    data[place(random, len(data))] ^= 1 << random.randrange(8)


def overwrite(random, data):
    data[place(random, len(data))] = random.randrange(256)


def truncate(random, data):
    del data[place(random, len(data)):]


def insert(random, data):
    at = place(random, len(data))
    data[at:at] = random.choice((random.randbytes(random.randint(1, 16)), random.choice(HOSTILE)))


def replace(random, data):
    at = place(random, len(data))
    data[at:at + random.randint(1, 8)] = random.choice(HOSTILE)


def duplicate(random, data):
    at = place(random, len(data))
    piece = data[at:at + random.randint(1, 256)]
    data[at:at] = piece


def zero(random, data):
    at = place(random, len(data))
    end = min(len(data), at + random.randint(1, 4096))
    data[at:end] = bytes(end - at)


def swap(random, data):
    size = random.randint(1, 64)
    a, b = sorted((place(random, len(data)), place(random, len(data))))
    if a + size <= b and b + size <= len(data):
        data[a:a + size], data[b:b + size] = data[b:b + size], data[a:a + size]


def drop(random, data):
    at = place(random, len(data))
    del data[at:at + random.randint(1, 64)]


WAYS = (flip, flip, overwrite, overwrite, truncate, insert, replace, replace, duplicate, zero, swap, drop)


def damaged(random, data):
    """A copy of `data` that differs from it in one to three places."""
    while True:
        copy = bytearray(data)
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            if copy:
                random.choice(WAYS)(random, copy)
        if copy != data:
            return bytes(copy)
