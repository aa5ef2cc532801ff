#!/usr/bin/env python3
"""Writes the held-out questions: normal.json and advanced.json, with answers that Python computes.

    held_out.py [--check]

Their wordings are none of tasks.py, and their numbers are new; --check only compares the files with what would be
written, and verifies that no question is one of the first hundred thousand of the training.
"""

import argparse
import json
import math
import pathlib
import random
import sys

import tasks

HERE = pathlib.Path(__file__).parent


def shown(value):
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)


NORMAL = [
    ("Kindly multiply 4821 by 736.", 4821 * 736),
    ("Someone asked me to add 60418 and 9377, what comes out?", 60418 + 9377),
    ("I keep getting 70211 - 58964 wrong; what is it really?", 70211 - 58964),
    ("For my essay I need 93847 divided by 212 (whole numbers only).", 93847 // 212),
    ("Which number is left over as 88123 mod 457?", 88123 % 457),
    ("Let us see what 13 to the power of 7 gives.", 13 ** 7),
    ("Say, 312 times 875 plus 4404 equals what?", 312 * 875 + 4404),
    ("Our teacher wrote (529 + 7140) * 38 on the board. Solve it.", (529 + 7140) * 38),
    ("Mind telling me the sum of 412, 77, 905 and 268?", 412 + 77 + 905 + 268),
    ("Pick the largest of 631, 94, 877, 340 and 702.", 877),
    ("From the list I need the smallest of 518, 266, 903 and 147.", 147),
    ("Could I have 83, 417, 9, 256 sorted?", [9, 83, 256, 417]),
    ("The average of 57, 214, 390 and 118 would be what?", "194 remainder 3"),
    ("Hey there, the gcd of 9216 and 1512?", math.gcd(9216, 1512)),
    ("I was told to look up the least common multiple of 84 and 231.", math.lcm(84, 231)),
    ("Once more: 17^23 mod 1009.", pow(17, 23, 1009)),
    ("Is there a way to get 37 factorial modulo 9973?", math.factorial(37) % 9973),
    ("Name the Fibonacci number 47.", 2971215073),
    ("Check whether 65537 is prime.", 1),
    ("List the digits of 730925.", [7, 3, 0, 9, 2, 5]),
    ("We want the dot product of [12, 7, 40] and [3, 95, 8].", 12 * 3 + 7 * 95 + 40 * 8),
    ("Guess how many times 4 occurs in 4, 8, 4, 1, 4, 8!", 3),
    ("Carla has 47 boxes with 36 pencils each. How many pencils is that?", 47 * 36),
    ("Take the product of 19, 62 and 45, would you?", 19 * 62 * 45),
]

ADVANCED = [
    ("Kindly write a kernel that multiplies each of 14, 209, 63 and 8 by 27.", [14 * 27, 209 * 27, 63 * 27, 8 * 27]),
    ("For my class I need a CUDA kernel that squares 31, 7, 112, 45 and 60.", [x * x for x in (31, 7, 112, 45, 60)]),
    ("Try to build a kernel that adds up 405, 18, 277, 936 and 52.", [405 + 18 + 277 + 936 + 52]),
    ("We want a kernel that finds the largest of 381, 640, 72, 519.", [640]),
    ("Would a kernel work that reverses 5, 81, 29, 330, 4 and 17?", [17, 4, 330, 29, 81, 5]),
    ("Show off: write a CUDA kernel that adds [41, 6, 73] and [18, 90, 25].", [59, 96, 98]),
    ("On the GPU, write a kernel that counts the odd numbers in 13, 88, 7, 21, 64 and 35.", [4]),
    ("Someone wants a kernel that writes the first 7 multiples of 46.", [46 * i for i in range(7)]),
]


def training_questions(count):
    dice = random.Random("training 0")
    return {tasks.example(dice)[0] for _ in range(count)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    for name, pairs in (("normal", NORMAL), ("advanced", ADVANCED)):
        questions = [{"question": question, "answer": shown(answer)} for question, answer in pairs]
        text = "[\n" + ",\n".join("  " + json.dumps(question) for question in questions) + "\n]\n"
        file = HERE / f"{name}.json"
        if not options.check:
            file.write_text(text)
        elif file.read_text() != text:
            sys.exit(f"{file} is not what held_out.py writes")
    if options.check:
        seen = training_questions(100_000) & {question for question, _ in NORMAL + ADVANCED}
        if seen:
            sys.exit(f"these questions are trained on: {sorted(seen)}")


if __name__ == "__main__":
    main()
