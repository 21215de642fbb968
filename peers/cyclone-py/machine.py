"""A type with most kinds of members, in all three extensibilities, for peer.py."""

from dataclasses import dataclass
from typing import Optional

from cyclonedds.idl import IdlBitmask, IdlEnum, IdlStruct, IdlUnion
from cyclonedds.idl import annotations as annotate
from cyclonedds.idl import types


@annotate.bit_bound(8)
class Color(IdlEnum, typename="kinds::Color", default="RED"):
    RED = 0
    GREEN = 5


@annotate.bit_bound(12)
@dataclass
class Lights(IdlBitmask, typename="kinds::Lights"):
    left: bool = False
    annotate.position("left", 0)
    right: bool = False
    annotate.position("right", 7)


@dataclass
@annotate.final
class Point(IdlStruct, typename="kinds::Point"):
    x: types.float64
    y: types.float32


@dataclass
@annotate.mutable
class Settings(IdlStruct, typename="kinds::Settings"):
    label: str
    scale: Optional[types.float64]
    steps: types.sequence[types.uint32]


@annotate.appendable
class Load(IdlUnion, discriminator=types.int16, typename="kinds::Load"):
    mass: types.case[[1, 2], types.float64]
    what: types.default[str]


@dataclass
@annotate.appendable
class Machine(IdlStruct, typename="kinds::Machine"):
    id: types.uint64
    annotate.key("id")
    name: types.bounded_str[8]
    annotate.key("name")
    color: Color
    at: Point
    path: types.sequence[Point, 4]
    grid: types.array[types.array[types.int16, 3], 2]
    pairs: types.sequence[types.array[str, 2]]
    vectors: types.sequence[types.array[types.float32, 3]]
    settings: Settings
    lights: Lights
    load: Load
    letter: types.char
    flag: bool
    raw: types.sequence[types.uint8]
    maybe: Optional[types.int32]
    small: types.int8


def machine(index):
    """The index-th machine."""
    return Machine(
        id=(1 << 64) - 1 - index,
        name=f"m{index}",
        color=Color.GREEN if index % 2 else Color.RED,
        at=Point(x=index / 3, y=0.5),
        path=[Point(x=1.0, y=-1.0)] * (index % 3),
        grid=[[index, 2, 3], [4, 5, -6]],
        pairs=[["a", "bc"], ["", f"{index}"]],
        vectors=[[0.5, index, -1.0]] * (index % 3),
        settings=Settings(label="ü", scale=None if index % 2 else 0.1, steps=[1, 2]),
        lights=Lights(left=index % 2 == 1, right=True),
        load=Load(discriminator=2, value=index + 0.25) if index % 2 else Load(what="much"),
        letter="z",
        flag=index % 2 == 0,
        raw=[index, 255],
        maybe=None if index % 2 else -index,
        small=-128,
    )


def machine_as_json(data):
    """All members by name, nested."""
    point = lambda point: {"x": point.x, "y": point.y}
    settings, load = data.settings, data.load
    return {
        "id": data.id,
        "name": data.name,
        "color": data.color.name,
        "at": point(data.at),
        "path": [point(one) for one in data.path],
        "grid": [list(row) for row in data.grid],
        "pairs": [list(pair) for pair in data.pairs],
        "vectors": [list(vector) for vector in data.vectors],
        "settings": {"label": settings.label, "scale": settings.scale, "steps": list(settings.steps)},
        "lights": [name for name in ("left", "right") if getattr(data.lights, name)],
        "load": {"discriminator": load.discriminator, "value": load.value},
        "letter": data.letter,
        "flag": data.flag,
        "raw": list(data.raw),
        "maybe": data.maybe,
        "small": data.small,
    }
