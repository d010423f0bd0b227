"""How well the name of a column says that it refers to another column.

A name is read as words (snake_case, camelCase, singular), its *stem* is what remains without words such
as `id` or `key`. A reference is named after the table it points to (`orders.customer_id` to
`customers.id`), or like the column there (`o_custkey` to `c_custkey`), with a role in front
(`home_team_id`), shortened (`cust`, `dept`), or after the role alone when it points back into its own table
(`manager_id`). The head of an English name is its last word: `customer_type_id` is a type, no customer.

A prefix that all columns of a table share (`l_`, `ps_`) is read as the table's alias: it is dropped, and
it names the table (`o_c_id` refers to the table whose columns start with `c_`). Every name keeps all its
readings and the best one counts, so that a wrong guess about a prefix or an ending costs nothing.

Costs: words are compared once per pair of words (cached); a match looks at some ten pairs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

Words = tuple[str, ...]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that make a name the name of a key, and say nothing about what it is a key of.
KEY_WORDS = _words(
    "id key no nr nbr num number code cd pk fk sk uid uuid guid oid ref identifier ident rowid"
)
# Of these the words that a number is called by which only tells rows apart: neither codes nor counts.
ID_WORDS = _words("id key pk fk sk uid uuid guid oid identifier ident rowid")
# Endings that are written without a gap: custkey, deptno, customerid. The longest is tried first.
GLUED = ("number", "code", "uuid", "guid", "key", "nbr", "num", "id", "no", "nr", "cd", "fk", "sk", "pk")
# Words that tell kinds of tables apart, not what is in them.
TABLE_WORDS = _words("tbl tb tab table dim fact fct stg ods dw vw view mst master lkp lookup xref src")
# Attributes that any table may have: two columns of the same such name need not have to do with each other.
ATTRIBUTES = _words(
    "name title type kind status state date time timestamp description descr comment note text value email "
    "phone address url order seq line flag active created updated modified version label nm dt ts"
)
# Quantities, which refer to nothing.
MEASURES = _words(
    "age amount balance budget capacity cost count day discount distance duration height hour length level "
    "minute month percent percentage position price priority probability qty quantity rank rate rating ratio "
    "salary score seat second sequence size speed sum tax temperature total volume weight width year"
)
# Tables of kinds, names and heads are referred to without saying so: role_id for role_type.id.
TABLE_TAILS = _words("name type kind status header hdr head list catalog lookup record")
# Roles that people play, and tables of people.
PERSON_ROLES = _words(
    "owner author creator editor user assignee reporter reviewer approver agent rep representative seller "
    "buyer sender recipient advisor manager supervisor member by"
)
PERSON_TABLES = _words("user usr person employee emp staff member account contact teacher people")
# Roles that rows of one table play for each other.
SELF_ROLES = _words(
    "parent manager mgr boss supervisor superior superordinate predecessor previous prev successor next root "
    "ancestor origin original base reply replaced replaces duplicate super lead chief head report"
)
# Names of columns nobody has named.
BLANK_WORDS = _words("col column field attr attribute var unnamed")

IRREGULAR = {"people": "person", "children": "child", "men": "man", "women": "woman", "indices": "index"}
VOWELS = frozenset("aeiou")
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")

# What a role that people play says about a reference to a table of people.
PERSON = 0.55
# A similarity from which on two names are taken to mean the same.
SAME = 0.65
# What remains of a similarity if the parent's column is itself named after a third table.
BORROWED = 0.75
NO_KEY_WORD = 0.95  # `dept` for departments.code: a little less telling than `dept_id`


@dataclass(frozen=True, slots=True)
class NameMatch:
    """How well a name says what it refers to: 0 (not at all) to 1 (equal), and the reason in words.

    `blank`: the name says nothing about anything (c1, column7). `elsewhere`: it says that the column is
    something else: named after another table, the key of its own one, or a quantity. `reference`: it is
    the name of a reference to something (owner_id).
    """

    value: float
    text: str
    blank: bool = False
    elsewhere: bool = False
    reference: bool = False


@dataclass(frozen=True, slots=True)
class _Name:
    """A column's name: its stems, and whether it has a word such as id or key."""

    stems: tuple[Words, ...]
    has_key_word: bool
    blank: bool


class Names:
    """The names of all columns and tables, read once.

    >>> names = Names({"customers": ["id", "name"], "orders": ["id", "cust_id", "total"]})
    >>> round(names.match("orders", "cust_id", "customers", "id").value, 2)
    0.82
    >>> names.match("orders", "id", "customers", "id").value
    0.0
    """

    def __init__(self, columns: Mapping[str, Sequence[str]]) -> None:
        prefixes = {table: _shared_prefix(names) for table, names in columns.items()}
        n_uses = Counter(prefixes.values())
        self._tables = {table: _table_words(table) for table in columns}
        # Two tables with one prefix: then it does not tell which table is meant.
        self._aliases = {t: p for t, p in prefixes.items() if p is not None and n_uses[p] == 1}
        self._names = {
            (table, name): _read(name, prefixes[table]) for table, names in columns.items() for name in names
        }
        self._named_after: dict[tuple[str, str], tuple[float, str | None]] = {}

    def match(self, table: str, column: str, parent: str, key: str, *, part: bool = False) -> NameMatch:
        """How well table.column is named for a reference to parent.key.

        `part`: the key is one of several columns of a composite key, which is often itself a reference to a
        third table, so that being named after that one is no objection.
        """
        child, target = self._names[table, column], self._names[parent, key]
        here, there = f"{table}.{column}", f"{parent}.{key}"
        if child.blank:
            return NameMatch(0.0, f"the name {here} says nothing", blank=True)
        if not any(child.stems):
            return self._subtype(table, column, parent, key)
        if table == parent:
            return self._to_itself(child, table, here)
        by_column, by_table = self._to_column(child, target), self._to_table(child, parent, target)
        if not part and self._borrowed(parent, key):
            by_column, by_table = BORROWED * by_column, BORROWED * by_table
        best = max(by_column, by_table)
        text = f"{here} is named like {there}" if by_column > by_table else f"{here} is named after {parent}"
        if best < PERSON and self._is_person(child, parent):
            return NameMatch(PERSON, f"{here} is named like a role of one of {parent}")
        if not child.has_key_word:
            best *= NO_KEY_WORD
        if best >= 0.3:
            return NameMatch(best, text if best >= SAME else f"{text}, more or less")
        value, other = self._best_table(table, column)
        if value >= SAME and other not in (parent, None):
            return NameMatch(best, f"{here} is named after {other}, not after {parent}", elsewhere=True)
        if not child.has_key_word and any(s and s[-1] in MEASURES for s in child.stems):
            return NameMatch(best, f"{here} is named like a quantity", elsewhere=True)
        text = f"the name {here} does not point to {there}"
        return NameMatch(best, text, reference=child.has_key_word)

    def subject(self, table: str, column: str) -> Words | None:
        """What a column is about, to compare columns of different tables; None if its name does not tell."""
        name = self._names[table, column]
        stems = [s for s in name.stems if _telling(s) and not all(w in ATTRIBUTES | MEASURES for w in s)]
        return None if name.blank or not any(name.stems) else min(stems, key=len, default=None)

    def has_key_word(self, table: str, column: str) -> bool:
        """Whether a name says that it is that of a key, of whatever table: customer_id, no."""
        return self._names[table, column].has_key_word

    def of_key(self, table: str, column: str) -> float:
        """How much a column is named like the key of its table, 0 to 1: `id`, `customer_id`, `code`."""
        name = self._names.get((table, column))
        if name is None or name.blank:
            return 0.0
        entity = self._tables[table]
        like = max((similarity(s, entity) if s else 1.0 for s in name.stems if entity or not s), default=0.0)
        if like < 0.3 and any(s and s[-1] in ATTRIBUTES | MEASURES for s in name.stems):
            return 0.0
        return 0.5 * name.has_key_word + 0.5 * like

    def _to_itself(self, child: _Name, table: str, here: str) -> NameMatch:
        """A reference to another row of its table has a role: manager_id, parent_account_id in accounts."""
        entity = self._tables[table]
        if entity and entity in child.stems:
            return NameMatch(0.0, f"{here} is named like the key of {table} itself", elsewhere=True)
        text = f"{here} is named like a reference to another row of {table}"
        if any(entity and s[-len(entity) :] == entity for s in child.stems):
            return NameMatch(0.9, text)
        if any(w in SELF_ROLES for s in child.stems for w in s):
            return NameMatch(0.8, text)
        return NameMatch(0.0, f"{here} has no name of a role in {table}", reference=child.has_key_word)

    def _to_column(self, child: _Name, target: _Name) -> float:
        best = 0.0
        for a in child.stems:
            for b in target.stems:
                if not a or not b:
                    continue
                value = similarity(a, b)
                if not (_telling(a) and _telling(b)):  # one letter: c_id and o_c_id
                    value = 0.9 if a == b and child.has_key_word and target.has_key_word else 0.0
                elif not child.has_key_word and any(all(w in ATTRIBUTES for w in x) for x in (a, b)):
                    value *= 0.35  # both are called `name`
                best = max(best, value)
        return best

    def _is_person(self, child: _Name, parent: str) -> bool:
        is_role = any(s and s[-1] in PERSON_ROLES for s in child.stems)
        return is_role and any(w in PERSON_TABLES for w in self._tables[parent][-1:])

    def _to_table(self, child: _Name, parent: str, target: _Name) -> float:
        entity, alias = self._tables[parent], self._aliases.get(parent)
        best = 0.0
        for a in child.stems:
            if not a:
                continue
            if alias is not None and a == (alias,):
                best = max(best, 0.9)
            if _telling(a) and entity:
                best = max(best, similarity(a, entity))
                if len(entity) > 1 and entity[-1] in TABLE_TAILS:
                    best = max(best, 0.85 * similarity(a, entity[:-1]))
                for b in target.stems:
                    if b and len(a) > len(b):  # dept_name for departments.name; not: name
                        best = max(best, similarity(a, entity + b))
        return best

    def _subtype(self, table: str, column: str, parent: str, key: str) -> NameMatch:
        """`id` is the key of its own table, which may extend another one: customer_details, customers."""
        extension, entity = self._tables[table], self._tables[parent]
        if table != parent and entity and extension and self.of_key(parent, key) >= 0.5:
            n = len(entity)
            starts, ends = zip(extension[:n], entity, strict=False), zip(extension[-n:], entity, strict=False)
            same = max(min(word_similarity(a, b) for a, b in part) for part in (starts, ends))
            if len(extension) > n and same >= SAME:
                return NameMatch(0.6 * same, f"{table} is named like an extension of {parent}")
        return NameMatch(0.0, f"{table}.{column} is named like the key of {table} itself", elsewhere=True)

    def _borrowed(self, parent: str, key: str) -> bool:
        """Whether parent.key is named after another table than its own."""
        value, other = self._best_table(parent, key)
        if other is None or value < SAME:
            return False
        return value > self._to_table(self._names[parent, key], parent, _NO_NAME)

    def _best_table(self, table: str, column: str) -> tuple[float, str | None]:
        """The other table that a column is named after best, cached."""
        if (table, column) not in self._named_after:
            name = self._names[table, column]
            others = [(self._to_table(name, t, _NO_NAME), t) for t in self._tables if t != table]
            best = max(others, key=lambda o: (o[0], o[1]), default=(0.0, ""))
            self._named_after[table, column] = (best[0], best[1] if best[0] > 0 else None)
        return self._named_after[table, column]


_NO_NAME = _Name((), False, True)


def words(name: str) -> Words:
    """The words of a name, lower case and singular.

    >>> words("OrderDetailsID"), words("home_team_ids"), words("address2")
    (('order', 'detail', 'id'), ('home', 'team', 'id'), ('address', '2'))
    """
    return tuple(_singular(w.lower()) for w in WORD.findall(name))


def names_id(name: str) -> bool:
    """Whether a name is that of an id, of this table or of another one.

    >>> [names_id(name) for name in ("id", "CustomerID", "custkey", "rating", "number_of_engines", "paid")]
    [True, True, True, False, False, False]
    """
    return any(w[-1] in ID_WORDS for whole in [words(name)] if whole for w in (whole, *_unglued(whole[-1])))


@lru_cache(maxsize=1 << 16)
def similarity(a: Words, b: Words) -> float:
    """How much two non-empty names mean the same, 0 to 1: the last words count most.

    >>> round(similarity(("home", "team"), ("team",)), 2), similarity(("team",), ("team",))
    (0.9, 1.0)
    >>> similarity(("customer", "type"), ("customer",)) < 0.3
    True
    """
    if a == b:
        return 1.0
    in_b = [max(word_similarity(x, y) for y in b) for x in a]
    in_a = [max(word_similarity(x, y) for x in a) for y in b]
    share_a, share_b = sum(in_b) / len(a), sum(in_a) / len(b)
    both = 2 * share_a * share_b / (share_a + share_b) if share_a + share_b else 0.0
    head = word_similarity(a[-1], b[-1])
    value = max(0.7 * head + 0.3 * min(head, both), 0.35 * both)
    if min(in_b) < 0.5 and min(in_a) < 0.5:
        value *= 0.4  # each has a word of its own: customer_name, supplier_name
    if len(a) > 1 or len(b) > 1:
        value = max(value, _whole(a, b))
    return value


@lru_cache(maxsize=1 << 16)
def word_similarity(a: str, b: str) -> float:
    """How much two words mean the same: equal, one short for the other, its end, or misspelt.

    An abbreviation starts like the word; letters it leaves out after that leave only consonants.

    >>> [round(word_similarity("department", w), 2) for w in ("department", "dept", "depart", "date")]
    [1.0, 0.69, 0.86, 0.0]
    """
    if a == b:
        return 1.0
    short, long = (a, b) if len(a) <= len(b) else (b, a)
    if len(short) < 3 or short.isdigit() or short[0] != long[0]:
        return 0.7 if len(short) >= 4 and long.endswith(short) else 0.0
    ratio = len(short) / len(long)
    if long.startswith(short):
        return 0.65 + 0.35 * ratio
    if ratio <= 0.7 and _abbreviates(short, long):
        return 0.55 + 0.35 * ratio
    if len(short) >= 5 and ratio >= 0.75:
        alike = SequenceMatcher(None, short, long, autojunk=False).ratio()
        return 0.9 * alike if alike >= 0.8 else 0.0
    return 0.0


def _whole(a: Words, b: Words) -> float:
    """Names written with and without gaps (orderdetail, order_details), and initials (ol, order_line)."""
    one, two = "".join(a), "".join(b)
    if one == two:
        return 0.95
    for short, long in ((a, b), (b, a)):
        if len(short) == 1 and len(long) >= 2 and short[0] == "".join(w[0] for w in long):
            return 0.75
    return 0.0


def _abbreviates(short: str, long: str) -> bool:
    same = 0
    while short[same] == long[same]:
        same += 1
        if same == len(short):
            return True
    rest, position = short[same:], same
    if any(letter in VOWELS for letter in rest):
        return False
    for letter in rest:
        position = long.find(letter, position) + 1
        if position == 0:
            return False
    return True


def _singular(word: str) -> str:
    if word in IRREGULAR:
        return IRREGULAR[word]
    if len(word) <= 3 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return "id" if word == "ids" else word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zes")):
        return word[:-2]
    return word[:-1]


def _table_words(table: str) -> Words:
    """The words of a table's name, without its schema (`shop.customers`) and words such as `dim`."""
    every = words(table.rsplit(".", 1)[-1])
    return tuple(w for w in every if w not in TABLE_WORDS and not w.isdigit()) or every


def _shared_prefix(columns: Sequence[str]) -> str | None:
    """The first word, if all columns start with it and go on with another word."""
    split = [words(c) for c in columns]
    if len(split) < 2 or any(len(w) < 2 or w[1].isdigit() for w in split):
        return None
    return split[0][0] if len({w[0] for w in split}) == 1 else None


@lru_cache(maxsize=1 << 16)
def _read(column: str, prefix: str | None) -> _Name:
    every = words(column)
    readings = [every]
    if prefix is not None and len(every) > 1:
        readings.append(every[1:])
    for reading in list(readings):
        if reading and reading[-1] not in KEY_WORDS:
            readings += [(*reading[:-1], *split) for split in _unglued(reading[-1])]
    stems = tuple(dict.fromkeys(_stem(r) for r in readings))
    has_key_word = any(w in KEY_WORDS for r in readings for w in r)
    return _Name(stems, has_key_word, not has_key_word and not any(_telling(s) for s in stems))


def _unglued(word: str) -> list[Words]:
    endings = [e for e in GLUED if word.endswith(e) and len(word) - len(e) >= 3]
    return [(word[: -len(e)], e) for e in endings[:1]]


def _stem(every: Words) -> Words:
    start, end = 0, len(every)
    while end > start and (every[end - 1] in KEY_WORDS or every[end - 1].isdigit()):
        end -= 1
    while start < end and every[start] in KEY_WORDS:
        start += 1
    return every[start:end]


def _telling(stem: Words) -> bool:
    return any(len(w) >= 2 and w not in BLANK_WORDS and not w.isdigit() for w in stem)
