"""Which output belongs to which, which feed to which input: never guessed."""

from __future__ import annotations

from driftgate.numerics.outputs import NamedTensor, pair_outputs, plan_feeds


def t(name: str, *shape: int, kind: str = "f") -> NamedTensor:
    return NamedTensor(name, kind, shape)


def test_names_pair_first_and_the_map_joins_other_names() -> None:
    found = pair_outputs(
        [t("boxes", 1, 4), t("scores", 1, 2)], [t("scores", 1, 2), t("head.0", 1, 4)], names={"boxes": ("head.0",)}
    )
    assert [(p.name, p.a, p.b, p.how) for p in found.pairs] == [
        ("boxes", "boxes", "head.0", "map"),
        ("scores", "scores", "scores", "name"),
    ]


def test_the_map_works_from_either_side() -> None:
    found = pair_outputs([t("head.0", 1, 4)], [t("out", 1, 4)], names={"boxes": ("head.0", "out")})
    assert [(p.name, p.a, p.b) for p in found.pairs] == [("boxes", "head.0", "out")]


def test_a_signature_pairs_only_where_it_is_unique_on_both_sides() -> None:
    unique = pair_outputs([t("a", 1, 4), t("b", 1, 2)], [t("x", 1, 2), t("y", 1, 4)], names={})
    assert [(p.a, p.b, p.how) for p in unique.pairs] == [("a", "y", "signature"), ("b", "x", "signature")]
    twice = pair_outputs([t("a", 1, 4), t("b", 1, 4)], [t("x", 1, 4), t("y", 1, 4)], names={})
    assert (twice.pairs, twice.left_a, twice.left_b) == ((), ("a", "b"), ("x", "y"))


def test_integers_do_not_pair_with_floats_by_signature() -> None:
    found = pair_outputs([t("a", 1, 4)], [t("x", 1, 4, kind="i")], names={})
    assert (found.pairs, found.left_a) == ((), ("a",))


def test_an_output_left_out_on_purpose_is_no_leftover() -> None:
    found = pair_outputs([t("y", 1), t("aux", 9)], [t("y", 1)], names={}, ignored=("aux",))
    assert (found.left_a, found.left_b) == ((), ())


def test_feeds_go_by_name_by_map_and_one_to_one() -> None:
    assert plan_feeds(["x"], ["x", "sr"], names={}).unused == ("sr",)
    assert plan_feeds(["image"], ["x"], names={"x": ("image",)}).inputs == (("image", "x"),)
    assert plan_feeds(["whatever"], ["x"], names={}).inputs == (("whatever", "x"),)


def test_two_open_inputs_are_missing_and_not_guessed() -> None:
    plan = plan_feeds(["p", "q"], ["x", "y"], names={})
    assert (plan.inputs, plan.missing, plan.unused) == ((), ("p", "q"), ("x", "y"))


def test_an_optional_input_is_never_missing() -> None:
    plan = plan_feeds(["audio"], ["x"], names={}, optional=("state",))
    assert (plan.inputs, plan.missing) == ((("audio", "x"),), ())
