"""Questions and answers for the stand-in: arithmetic with spans that the GPU computes, and small CUDA kernels.

An answer is a list of pieces: (text, True) is what the model must learn to write, (text, False) is what the driver puts
there, a result. The training set is endless: every call draws new numbers, operations and wordings.
"""

import math
import random

# Words around a question, put together at random; held-out questions use others.
OPEN = ["", "", "", "Hello, ", "Hi! ", "Please ", "Now ", "So, ", "OK, ", "Quick question: ", "Well, ", "Next, ", "Dear model, ",
        "Let's see: ", "Hey, ", "Right, ", "Good morning. ", "Hm, ", "One more: ", "Also, ", "And ", "Then "]
ASK = ["what is {}", "compute {}", "calculate {}", "tell me {}", "find {}", "{}", "{} = ", "can you compute {}", "give me {}",
       "how much is {}", "evaluate {}", "what do you get for {}", "what's {}", "I want to know {}", "work out {}",
       "could you tell me {}", "use the GPU to find {}", "let the GPU compute {}", "do you know {}", "I would like {}",
       "show me {}", "my homework asks for {}", "determine {}", "I need {}", "help me with {}", "run the numbers for {}",
       "you should {}", "can you {}", "I have to {}", "if I {}, what do I get", "{} gives what", "{} is what", "answer this: {}"]
CLOSE = ["", "", "", " for me", " please", ", please", " now", " with the GPU", " quickly", " and nothing else", " if you can",
         " today", ", thanks", " again", ", I am curious"]
MARKS = ["?", "?", ".", ".", "", "!"]
FILLERS = (
    "a about after again all am an any are as ask at be because been before but by can come could day did do does done down "
    "each else every far few first for friend from get go good got great had has have he her here his house how however i "
    "idea if in into it its just keep know last late let like little long look made make many may me mean might more much must "
    "my need never new nice no not note now of off old on once only or other our out over own page paper part people problem "
    "put question quite read real really said same saw say school see seem she should small so some somebody soon still such "
    "take talk task tell test than thank that the their them then there these they thing think this those though thought "
    "through to today too try two under until up us use very wait want was water way we week well went were what when where "
    "which while who why will wish with without wonder work world would write year yes yet you your").split()


def invented(dice):
    """A word that no text has: with these the model learns to look past words it does not know."""
    return "".join(dice.choice("bcdfghjklmnpqrstvwxz") + dice.choice("aeiouy") + dice.choice(["", "", "n", "r", "s", "t"])
                   for _ in range(dice.randint(1, 3)))


def filler(dice, most):
    """Up to `most` words that mean nothing."""
    words = [dice.choice(FILLERS) if dice.random() < 0.6 else invented(dice) for _ in range(dice.randint(0, most))]
    return "".join(word + dice.choice([" ", " ", " ", " ", " ", ", "]) for word in words)


def asked(dice, ways, phrase):
    """The phrase as a question or a request, in one of many ways, some of them senseless."""
    chance = dice.random()
    if chance < 0.5:
        text = dice.choice(OPEN) + dice.choice(ways).format(phrase) + dice.choice(CLOSE)
    else:
        inner = dice.choice(ways).format(phrase) if chance < 0.75 else phrase
        after = filler(dice, 4).rstrip(", ")
        text = filler(dice, 7) + inner + (dice.choice([" ", ", ", "; "]) + after if after else "")
    if dice.random() < 0.6:
        text = text[0].upper() + text[1:]
    return text + dice.choice(MARKS)


LEAD = "The answer is "


def number(dice, most=5):
    """A number of up to `most` digits, all lengths alike."""
    return dice.randint(0, 10 ** dice.randint(1, most) - 1)


def positive(dice, most=5):
    return max(1, number(dice, most))


def numbers(dice, low=3, high=7, most=3):
    return [number(dice, most) for _ in range(dice.randint(low, high))]


def spoken(dice, values):
    """3, 1 and 4 — with or without the "and"."""
    texts = [str(value) for value in values]
    if dice.random() < 0.5:
        return ", ".join(texts)
    return ", ".join(texts[:-1]) + " and " + texts[-1]


def joined(values):
    return ", ".join(str(value) for value in values)


# ---- Operations: (phrases, span, value). A phrase fits into ASK.

def addition(dice):
    a, b = number(dice), number(dice)
    return [f"{a} + {b}", f"{a}+{b}", f"{a} plus {b}", f"the sum of {a} and {b}", f"{a} and {b} added together",
            f"{a} added to {b}", f"add {a} and {b}", f"add {a} to {b}", f"sum up {a} and {b}", f"the total of {a} and {b}", f"{a} increased by {b}"], f"{a} + {b}", a + b


def subtraction(dice):
    a, b = number(dice), number(dice)
    return [f"{a} - {b}", f"{a}-{b}", f"{a} minus {b}", f"the difference of {a} and {b}", f"{a} less {b}", f"subtract {b} from {a}", f"take {b} from {a}", f"{a} reduced by {b}",
            f"{a} take away {b}"], f"{a} - {b}", a - b


def multiplication(dice):
    a, b = number(dice), number(dice)
    return [f"{a} * {b}", f"{a}*{b}", f"{a} times {b}", f"the product of {a} and {b}", f"{a} multiplied by {b}",
            f"{a} x {b}", f"multiply {a} by {b}", f"multiply {a} and {b}", f"multiply {a} with {b}"], f"{a} * {b}", a * b


def division(dice):
    a, b = number(dice), positive(dice, 3)
    return [f"{a} / {b}", f"{a} divided by {b}", f"the quotient of {a} and {b}", f"how often {b} goes into {a}",
            f"{a} over {b}", f"divide {a} by {b}", f"the whole part of {a} divided by {b}"], f"{a} / {b}", a // b


def remainder(dice):
    a, b = number(dice), positive(dice, 3)
    return [f"{a} mod {b}", f"{a} % {b}", f"the remainder of {a} divided by {b}", f"{a} modulo {b}",
            f"what is left of {a} after division by {b}", f"the remainder of {a} by {b}",
            f"{a} divided by {b}, the remainder", f"reduce {a} modulo {b}"], f"{a} % {b}", a % b


def power(dice):
    a, b = dice.randint(2, 20), dice.randint(2, 9)
    return [f"{a} to the power of {b}", f"{a} ** {b}", f"{a}^{b}", f"{a} raised to {b}", f"raise {a} to the power of {b}"], f"{a} ** {b}", a ** b


def two_steps(dice):
    a, b, c = number(dice, 4), number(dice, 4), number(dice, 4)
    kind = dice.randrange(5)
    if kind == 0:
        return [f"{a} * {b} + {c}", f"{a} times {b} plus {c}", f"the product of {a} and {b}, plus {c}",
                f"{a} multiplied by {b} and then {c} added"], f"{a} * {b} + {c}", a * b + c
    if kind == 1:
        return [f"({a} + {b}) * {c}", f"the sum of {a} and {b}, times {c}", f"{a} plus {b}, all times {c}",
                f"the sum of {a} and {b} multiplied by {c}"], f"({a} + {b}) * {c}", (a + b) * c
    if kind == 2:
        return [f"{a} * {b} - {c}", f"{a} times {b} minus {c}", f"the product of {a} and {b}, minus {c}"], \
            f"{a} * {b} - {c}", a * b - c
    if kind == 3:
        return [f"{a} + {b} + {c}", f"{a} plus {b} plus {c}"], f"{a} + {b} + {c}", a + b + c
    c = positive(dice, 3)
    return [f"({a} * {b}) % {c}", f"the remainder of {a} times {b} divided by {c}", f"{a} times {b}, modulo {c}"], \
        f"({a} * {b}) % {c}", a * b % c


def story(dice):
    a, b, c = positive(dice, 3), positive(dice, 3), positive(dice, 3)
    thing = invented(dice) + "s" if dice.random() < 0.3 else dice.choice(["apples", "pens", "books", "coins", "eggs", "tickets", "stones", "cards", "bottles", "nails"])
    box = dice.choice(["boxes", "bags", "crates", "shelves", "jars"])
    who = invented(dice).title() + " has" if dice.random() < 0.5 else dice.choice(["I have", "Anna has", "Ben has", "We have", "A shop has", "There are"])
    kind = dice.randrange(3)
    if kind == 0:
        return f"{who} {a} {box} with {b} {thing} each. How many {thing} is that?", f"{a} * {b}", a * b
    if kind == 1:
        return f"{who} {a} {box} with {b} {thing} each, and {c} more {thing}. How many {thing} are there?", \
            f"{a} * {b} + {c}", a * b + c
    return f"{who} {a} {thing} and gets {b} more. How many {thing} is that?", f"{a} + {b}", a + b


def listed(name, words, value, low=3, high=7, most=3):
    def make(dice):
        values = numbers(dice, low, high, most)
        said = spoken(dice, values)
        return [word.format(said) for word in words], f"{name}({joined(values)})", value(values)
    return make


def count(dice):
    pool = [number(dice, 1) for _ in range(3)]
    values = [dice.choice(pool) for _ in range(dice.randint(4, 8))]
    wanted = dice.choice(pool)
    said = spoken(dice, values)
    return [f"how often {wanted} is in {said}", f"how many times {wanted} occurs in {said}",
            f"the number of {wanted}s in {said}"], f"count([{joined(values)}], {wanted})", values.count(wanted)


def dot(dice):
    size = dice.randint(2, 4)
    a, b = numbers(dice, size, size, 2), numbers(dice, size, size, 2)
    return [f"the dot product of [{joined(a)}] and [{joined(b)}]", f"the scalar product of [{joined(a)}] and [{joined(b)}]",
            f"[{joined(a)}] dot [{joined(b)}]"], f"dot([{joined(a)}], [{joined(b)}])", sum(x * y for x, y in zip(a, b))


def of_two(name, words, value):
    def make(dice):
        common = dice.randint(1, 40)
        a, b = common * positive(dice, 3), common * positive(dice, 3)
        return [word.format(a, b) for word in words], f"{name}({a}, {b})", value(a, b)
    return make


def powmod(dice):
    a, b, m = positive(dice, 4), positive(dice, 4), positive(dice, 4)
    return [f"{a} to the power of {b} modulo {m}", f"{a}^{b} mod {m}", f"the remainder of {a} to the power of {b} divided by {m}"], \
        f"powmod({a}, {b}, {m})", pow(a, b, m)


def factmod(dice):
    n, m = dice.randint(1, 60), positive(dice, 5)
    value = math.factorial(n) % m
    return [f"{n} factorial modulo {m}", f"{n}! mod {m}", f"the factorial of {n} modulo {m}"], f"factmod({n}, {m})", value


def fib(dice):
    n = dice.randint(1, 80)
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return [f"Fibonacci number {n}", f"the Fibonacci number {n}", f"fib({n})", f"number {n} of the Fibonacci sequence"], f"fib({n})", a


def is_prime(dice):
    n = number(dice)
    prime = n > 1 and all(n % k for k in range(2, math.isqrt(n) + 1))
    return [f"whether {n} is prime", f"whether {n} is a prime number", f"if {n} is prime", f"is {n} prime", f"is {n} a prime number"], f"isprime({n})", int(prime)


def digits(dice):
    n = number(dice, 7)
    return [f"the digits of {n}", f"the decimal digits of {n}", f"each digit of {n}", f"split {n} into digits"], f"digits({n})", [int(d) for d in str(n)]


def mean(values):
    return f"{sum(values) // len(values)} remainder {sum(values) % len(values)}"


OPERATIONS = [
    (3, addition), (3, subtraction), (3, multiplication), (2, division), (2, remainder), (2, power), (4, two_steps),
    (2, listed("sum", ["the sum of {}", "the total of {}", "{} added up", "the sum of the numbers {}", "add up {}", "sum {}"], sum)),
    (1, listed("product", ["the product of {}", "{} multiplied together", "the product of the numbers {}", "multiply {}"], math.prod, 3, 5, 2)),
    (2, listed("max", ["the maximum of {}", "the largest of {}", "the biggest of {}", "the greatest number among {}", "the largest number in {}", "the maximum in {}"], max)),
    (2, listed("min", ["the minimum of {}", "the smallest of {}", "the least of {}", "the smallest number among {}", "the minimum in {}", "the lowest of {}"], min)),
    (1, listed("mean", ["the mean of {}", "the average of {}", "the average of the numbers {}", "average {}"], mean)),
    (2, listed("sort", ["{} sorted", "{} in order", "the numbers {} in ascending order", "{} from small to large", "sort {}", "put {} in order"], sorted)),
    (1, count), (1, dot), (1, powmod), (1, factmod), (1, fib), (1, is_prime), (1, digits),
    (1, of_two("gcd", ["the greatest common divisor of {} and {}", "the gcd of {} and {}", "gcd({}, {})"], math.gcd)),
    (1, of_two("lcm", ["the least common multiple of {} and {}", "the lcm of {} and {}", "lcm({}, {})"], math.lcm)),
]


def shown(value):
    return f"[{joined(value)}]" if isinstance(value, list) else str(value)


def answer(span, value):
    return [(f"{LEAD}<gpu>{span}</gpu>", True), (f" = {shown(value)}", False), (".", True)]


def normal(dice):
    """A question and its answer."""
    if dice.random() < 0.1:
        question, span, value = story(dice)
        return question, answer(span, value)
    operation = dice.choices([make for _, make in OPERATIONS], [weight for weight, _ in OPERATIONS])[0]
    phrases, span, value = operation(dice)
    phrase = dice.choice(phrases)
    question = asked(dice, ASK, phrase)
    return question, answer(span, value)


# ---- Kernels.

WRITE = ["write a CUDA {}", "write a {}", "use a CUDA {}", "I need a {}", "make a CUDA {}", "write the {}", "give me a {}",
         "run a {}", "can you write a {}", "show me a {}", "I want a CUDA {}", "program a {}", "a {}", "with your own {}",
         "build a {}", "a GPU {}", "a small {}", "this needs a {}"]


def block(source, launch, result):
    return [(f"```cuda\n{source}\n{launch}\n```", True), (f"\n= {shown(result)}", False)]


def element(dice):
    """A phrase with {} for the elements, the C expression of x, and the value."""
    k, m = dice.randint(2, 99), dice.randint(1, 99)
    return dice.choice([
        ([f"multiplies each of {{}} by {k}", f"multiplies {{}} by {k}", f"takes {{}} times {k}"], f"x * {k}", lambda x: x * k),
        ([f"adds {k} to each of {{}}", f"adds {k} to {{}}", f"increases each of {{}} by {k}"], f"x + {k}", lambda x: x + k),
        ([f"subtracts {k} from each of {{}}", f"subtracts {k} from {{}}"], f"x - {k}", lambda x: x - k),
        (["squares each of {}", "squares {}", "computes the squares of {}"], "x * x", lambda x: x * x),
        (["cubes each of {}", "computes the cubes of {}"], "x * x * x", lambda x: x ** 3),
        (["doubles each of {}", "doubles {}"], "x * 2", lambda x: x * 2),
        ([f"multiplies each of {{}} by {k} and adds {m}", f"multiplies {{}} by {k} and then adds {m}"], f"x * {k} + {m}",
         lambda x: x * k + m),
        ([f"takes each of {{}} modulo {k}", f"computes the remainders of {{}} by {k}"], f"x % {k}", lambda x: x % k),
        ([f"divides each of {{}} by {k}", f"divides {{}} by {k}"], f"x / {k}", lambda x: x // k),
        (["negates each of {}", "negates {}"], "-x", lambda x: -x),
    ])


def each(dice):
    phrases, expression, value = element(dice)
    values = numbers(dice, 3, 8, 3)
    size = len(values)
    source = ("__global__ void f(const int *a, int *out, int n) {\n  int i = threadIdx.x;\n"
              f"  if (i < n) {{\n    int x = a[i];\n    out[i] = {expression};\n  }}\n}}")
    launch = f"f<<<1, {size}>>>(int[]{{{joined(values)}}}, int[{size}], {size});"
    return dice.choice(phrases).format(spoken(dice, values)), block(source, launch, [value(x) for x in values])


def pairs(dice):
    size = dice.randint(3, 6)
    a, b = numbers(dice, size, size, 2), numbers(dice, size, size, 2)
    words, symbol, value = dice.choice([
        (["adds {} and {}", "adds the lists {} and {}"], "+", lambda x, y: x + y),
        (["multiplies {} and {}", "multiplies the lists {} and {}"], "*", lambda x, y: x * y),
        (["subtracts {1} from {0}", "takes the differences of {} and {}"], "-", lambda x, y: x - y)])
    source = ("__global__ void f(const int *a, const int *b, int *out, int n) {\n  int i = threadIdx.x;\n"
              f"  if (i < n) out[i] = a[i] {symbol} b[i];\n}}")
    launch = f"f<<<1, {size}>>>(int[]{{{joined(a)}}}, int[]{{{joined(b)}}}, int[{size}], {size});"
    phrase = dice.choice(words).format(f"[{joined(a)}]", f"[{joined(b)}]")
    return phrase, block(source, launch, [value(x, y) for x, y in zip(a, b)])


def folded(dice):
    values = numbers(dice, 3, 8, 3)
    size = len(values)
    words, call, value = dice.choice([
        (["adds up {}", "sums {}", "computes the sum of {}"], "atomicAdd(out, a[i])", sum(values)),
        (["finds the maximum of {}", "finds the largest of {}"], "atomicMax(out, a[i])", max(values)),
        (["counts the even numbers in {}", "counts the even numbers among {}"], "if (a[i] % 2 == 0) atomicAdd(out, 1)",
         sum(1 for x in values if x % 2 == 0)),
        (["counts the odd numbers in {}", "counts the odd numbers among {}"], "if (a[i] % 2 == 1) atomicAdd(out, 1)",
         sum(1 for x in values if x % 2 == 1)),
        (["adds up the squares of {}", "computes the sum of the squares of {}"], "atomicAdd(out, a[i] * a[i])",
         sum(x * x for x in values))])
    source = ("__global__ void f(const int *a, int *out, int n) {\n  int i = threadIdx.x;\n"
              f"  if (i < n) {{\n    {call};\n  }}\n}}")
    launch = f"f<<<1, {size}>>>(int[]{{{joined(values)}}}, int[1], {size});"
    return dice.choice(words).format(spoken(dice, values)), block(source, launch, [value])


def turned(dice):
    values = numbers(dice, 3, 8, 3)
    size = len(values)
    words, index, result = dice.choice([
        (["reverses {}", "reverses the list {}", "turns {} around"], "n - 1 - i", values[::-1]),
        (["rotates {} by one", "rotates the list {} by one"], "(i + 1) % n", values[1:] + values[:1])])
    source = ("__global__ void f(const int *a, int *out, int n) {\n  int i = threadIdx.x;\n"
              f"  if (i < n) out[i] = a[{index}];\n}}")
    launch = f"f<<<1, {size}>>>(int[]{{{joined(values)}}}, int[{size}], {size});"
    return dice.choice(words).format(spoken(dice, values)), block(source, launch, result)


def indices(dice):
    size, k = dice.randint(3, 12), dice.randint(2, 99)
    words, expression, value = dice.choice([
        ([f"writes the first {size} squares", f"computes the first {size} square numbers"], "i * i", lambda i: i * i),
        ([f"writes the first {size} multiples of {k}", f"computes the first {size} multiples of {k}"], f"i * {k}",
         lambda i: i * k),
        ([f"counts from {k} in {size} steps", f"writes {size} numbers from {k} on"], f"i + {k}", lambda i: i + k)])
    source = ("__global__ void f(int *out, int n) {\n  int i = threadIdx.x;\n"
              f"  if (i < n) out[i] = {expression};\n}}")
    return dice.choice(words), block(source, f"f<<<1, {size}>>>(int[{size}], {size});", [value(i) for i in range(size)])


def advanced(dice):
    phrase, pieces = dice.choice([each, each, each, pairs, folded, turned, indices])(dice)
    return asked(dice, WRITE, "kernel that " + phrase), pieces


def example(dice):
    return advanced(dice) if dice.random() < 0.35 else normal(dice)


if __name__ == "__main__":
    for seed in range(20):
        question, pieces = example(random.Random(seed))
        print("Q:", question)
        print("A:", "".join(text if own else f"\033[36m{text}\033[0m" for text, own in pieces))
