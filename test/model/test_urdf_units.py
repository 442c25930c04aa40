# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Warnings about numbers of a URDF that are in other units."""

import pytest
from urdf_reference import joint, link, load, notes, urdf

PLAIN = {"mass": "1.2", "inertia": "0.002", "com": "0 0 0.1", "limits": "-2 2"}
PLAIN |= {"xyz": "0 0 0.3", "rpy": "0 0 0", "inertial_rpy": "0 0 0"}


def warned(**given):
    """The warnings about an arm of four links, of which the second is stated in some units."""
    parts = [link("l0", "")]
    for k in range(1, 5):
        x = PLAIN | given if k == 2 else PLAIN
        lower, upper = x["limits"].split()
        moments = "".join(f' {name}="{x["inertia"]}"' for name in ("ixx", "iyy", "izz"))
        inertial = (
            f'<inertial><origin xyz="{x["com"]}" rpy="{x["inertial_rpy"]}"/>'
            f'<mass value="{x["mass"]}"/><inertia{moments} ixy="0" ixz="0" iyz="0"/></inertial>'
        )
        more = (
            f'<origin xyz="{x["xyz"]}" rpy="{x["rpy"]}"/><axis xyz="0 1 0"/>'
            f'<limit lower="{lower}" upper="{upper}" effort="9" velocity="1"/>'
        )
        parts += [link(f"l{k}", inertial), joint(f"j{k}", f"l{k - 1}", f"l{k}", more=more)]
    return notes(load(urdf(*parts)), "warning")


@pytest.mark.parametrize(
    ("given", "subject", "parts"),
    [
        ({"inertia": "2e3"}, "link 'l2'", ("40.8 m", "kg m^2")),
        ({"mass": "1200", "inertia": "0.0002"}, "link 'l2'", ("1200 kg", "likely in g")),
        ({"inertia": "0"}, "link 'l2'", ("1.2 kg", "likely forgotten")),
        ({"inertia": "1e-9"}, "link 'l2'", ("2.9e-05 m", "likely forgotten")),
        ({"mass": "0"}, "link 'l2'", ("no mass",)),
        ({"com": "3 4 100"}, "link 'l2'", ("100.1 m", "likely in mm")),
        ({"xyz": "0 0 300"}, "joint 'j2'", ("300 m", "likely in mm")),
        ({"limits": "0 117.5"}, "joint 'j2'", ("117.5 rad", "degrees")),
        ({"rpy": "90 0 0"}, "joint 'j2'", ("'90 0 0'", "degrees")),
        ({"inertial_rpy": "0 -45 0"}, "link 'l2'", ("'0 -45 0'", "degrees")),
    ],
)
def test_likely_units_are_named_with_link_and_value(given, subject, parts):
    said = [x for x in warned(**given) if x.startswith(subject)]
    assert len(said) == 1
    assert all(part in said[0] for part in parts)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"limits": "-6.283 6.283"},
        {"limits": "-1e16 1e16"},
        {"limits": "-10 10"},
        {"rpy": "7.85398 -6.28319 3.14"},
        {"mass": "1e-6", "inertia": "1e-6"},
        {"mass": "30", "inertia": "1e-6"},
        {"mass": "0", "inertia": "0"},
    ],
)
def test_plausible_numbers_are_not_warned_of(given):
    assert not any("likely" in each for each in warned(**given))
