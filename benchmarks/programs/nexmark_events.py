"""Persons, auctions and bids in Nexmark's proportions, each a function of its number alone.

The shape is that of the Nexmark benchmark, the code is not: of every 50 events the first is a person, the next three
are auctions and the others bids; half of the bids go to one hot auction, and three quarters of bids and auctions come
from one hot person. There are ten events a millisecond. Only the standard library is used: workers of both engines
import this module.
"""

from collections.abc import Iterator

ROUND, AUCTIONS = 50, 3
PER_MILLISECOND = 10
FIRST_ID = 1_000
FIRST_CATEGORY, CATEGORIES = 10, 5
ACTIVE_PERSONS = 1_000
OPEN_AUCTIONS = 100
HOT_FOR = 100
"""A hot auction or person stays hot until a hundred more have come."""
LONGEST_AUCTION = 2 * OPEN_AUCTIONS * ROUND // (AUCTIONS * PER_MILLISECOND)
"""Milliseconds; on average an auction is open while a hundred others come."""

STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = ("Phoenix", "Los Angeles", "Boise", "Portland", "Seattle", "Cheyenne")
FIRST_NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal", "Ida", "Jo", "Kim")
LAST_NAMES = ("Abel", "Brook", "Cole", "Dean", "Ellis", "Frost", "Gray")
CHANNELS = ("web", "phone", "shop", "partner")
PRICES = tuple(int(100 * 10 ** (step * 6 / 1023)) for step in range(1024))
FILLER = "the quick brown fox jumps over the lazy dog and all the others look on in mild surprise "

Person = tuple[int, str, str, str, str, str, int, str]
"""id, name, email address, credit card, city, state, time, extra"""
Auction = tuple[int, str, str, int, int, int, int, int, int, str]
"""id, item, description, first bid, reserve, time, end, seller, category, extra"""
Bid = tuple[int, int, int, str, str, int, str]
"""auction, bidder, price, channel, url, time, extra"""

MASK = (1 << 64) - 1


def scramble(number: int) -> int:
    """64 bits that look like chance and follow from the number."""
    bits = (number + 1) * 0x9E3779B97F4A7C15 & MASK
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & MASK
    return bits ^ bits >> 31


def time_of(number: int) -> int:
    return number // PER_MILLISECOND


def some_person(number: int, bits: int) -> int:
    """The hot person of the moment three times of four, else one of those that came last."""
    last = number // ROUND
    if bits & 3:
        return FIRST_ID + last // HOT_FOR * HOT_FOR
    return FIRST_ID + last - (bits >> 2) % min(last + 1, ACTIVE_PERSONS)


def person(number: int) -> Person:
    bits = scramble(number)
    place = bits % len(STATES)
    name = f"{FIRST_NAMES[bits % 11]} {LAST_NAMES[bits % 7]}"
    card = f"{bits >> 48:05d} {bits >> 32 & 0xFFFF:05d}"
    mail = f"{bits & 0xFFFFFF:x}@mail.example"
    identity = FIRST_ID + number // ROUND
    return identity, name, mail, card, CITIES[place], STATES[place], time_of(number), FILLER[: bits >> 58]


def auction(number: int) -> Auction:
    bits = scramble(number)
    first_bid = PRICES[bits & 1023]
    begins = time_of(number)
    return (
        FIRST_ID + number // ROUND * AUCTIONS + number % ROUND - 1,
        f"item {bits & 0xFFFFF:x}",
        FILLER + FILLER,
        first_bid,
        first_bid + PRICES[bits >> 10 & 1023],
        begins,
        begins + 1 + (bits >> 20) % LONGEST_AUCTION,
        some_person(number, bits >> 24),
        FIRST_CATEGORY + (bits >> 16) % CATEGORIES,
        FILLER,
    )


def bid(number: int) -> Bid:
    bits = scramble(number)
    last = number // ROUND * AUCTIONS + AUCTIONS - 1
    if bits & 1:
        subject = last // HOT_FOR * HOT_FOR
    else:
        subject = last - (bits >> 1) % min(last + 1, OPEN_AUCTIONS)
    return (
        FIRST_ID + subject,
        some_person(number, bits >> 16),
        PRICES[bits >> 32 & 1023],
        CHANNELS[bits >> 42 & 3],
        f"https://auctions.example/item/{bits >> 44:x}",
        time_of(number),
        FILLER[: bits >> 59],
    )


def persons(number: int) -> Iterator[Person]:
    """The event with this number, if it is a person."""
    if number % ROUND == 0:
        yield person(number)


def auctions(number: int) -> Iterator[Auction]:
    """The event with this number, if it is an auction."""
    if 1 <= number % ROUND <= AUCTIONS:
        yield auction(number)


def bids(number: int) -> Iterator[Bid]:
    """The event with this number, if it is a bid."""
    if number % ROUND > AUCTIONS:
        yield bid(number)
