"""How the scripts beside this file write tables of characters for C++."""

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def ranges(code_points):
    out = []
    for c in sorted(code_points):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def print_list(head, items):
    print(f"{head} = {{")
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > 120:
            print(line)
            line = "   "
        line += f" {item},"
    print(f"{line}\n}};")


def print_ranges(name, code_points):
    print_list(f"constexpr CodeRange {name}[]", [f"{{0x{a:X}, 0x{b:X}}}" for a, b in ranges(code_points)])
