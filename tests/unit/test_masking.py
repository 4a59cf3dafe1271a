"""Masking: what hides in a text, a message, facts or a file is taken out, and everything else is left as it was."""

from __future__ import annotations

import base64
import io
import json
import string
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import driftgate.masking.masks as masks
from driftgate.domain.facts import Facts, Problem, ToolFacts
from driftgate.domain.investigations import Explanation, Investigation, Pair
from driftgate.domain.results import Results, Tool
from driftgate.domain.runs import Environment, RunOutcome
from driftgate.masking.aliases import Aliases
from driftgate.masking.masks import Mask, mask_of
from driftgate.masking.patterns import without_patterns
from driftgate.messages.english import ENGLISH
from driftgate.messages.message import Message, message
from driftgate.messages.text import in_language, text
from driftgate.storage.document import encode_results, read_results
from driftgate.storage.folder import write_all
from support.languages import CHINESE
from support.results import healthy_pair

SECRET = "s3cret/pass+word?"
KEY = """-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ
Zq0Vd8LwT1xkY3mRf7NpJ5uHs2BcGi9oEa4QyW6vKt
short==
-----END OPENSSH PRIVATE KEY-----
"""


def aliases(*secrets: str, **names: str) -> Aliases:
    """Aliases for some secrets, and for addresses by the names that stand for them."""
    found = Aliases()
    for name, hidden in names.items():
        found.add(hidden, name)
    for secret in secrets:
        found.add_secret(secret)
    return found


def mask(**environment: str) -> Mask:
    """The mask of an environment."""
    return mask_of(environment)


def base64_of(value: str) -> str:
    """As a header carries it."""
    return base64.b64encode(value.encode()).decode()


# --- names and secrets that are known


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("j6 is away", "lab is away"),
        ("root@j6:22", "root@lab:22"),
        ("J6.", "lab."),
        ("(j6)", "(lab)"),
        ("ssh://J6/", "ssh://lab/"),
        ("j6m", "j6m"),
        ("aj6", "aj6"),
        ("my-j6", "my-j6"),
        ("j6-b", "j6-b"),
        ("j6_0001", "j6_0001"),
        ("j6.example", "j6.example"),
        ("www.j6", "www.j6"),
    ],
)
def test_an_address_is_hidden_as_a_word_and_not_within_a_longer_one(said: str, shown: str) -> None:
    assert aliases(lab="j6").applied(said) == shown


def test_each_address_is_shown_by_its_own_name() -> None:
    hidden = aliases(lab="board.example", gate="fe80::1", farm="10.0.0.7")
    assert hidden.applied("board.example from 10.0.0.7 through [fe80::1]:22") == "lab from farm through [gate]:22"


def test_of_two_addresses_the_longer_one_is_found() -> None:
    assert aliases(lab="board", farm="board.example").applied("board.example, board") == "farm, lab"


@pytest.mark.parametrize("hidden", ["", "lab"])
def test_nothing_and_the_name_itself_stand_for_nothing(hidden: str) -> None:
    assert aliases(lab=hidden).applied("the lab is away") == "the lab is away"


def test_names_may_be_added_at_any_time() -> None:
    hidden = aliases(lab="one.example")
    assert hidden.applied("one.example two.example") == "lab two.example"
    hidden.add("two.example", "farm")
    hidden.add_secret("correct-horse")
    assert hidden.applied("one.example two.example correct-horse") == "lab farm ***"


@pytest.mark.parametrize(
    ("secret", "said", "shown"),
    [
        ("hunter22", "xhunter22x", "x***x"),
        ("hunter22", "key_hunter22.", "key_***."),
        ("hunter22", "HUNTER22", "***"),
        ("hunter22", "xHUNTER22x", "xHUNTER22x"),
        ("root1", "with root1:", "with ***:"),
        ("root1", "root12 aroot1 root1-b", "root12 aroot1 root1-b"),
        ("abc", "abc", "abc"),
        ("  a  ", "  a  ", "  a  "),
        ("a b c d e", "xa b c d ex", "x***x"),
        (" padded-secret\n", "xpadded-secretx", "x***x"),
    ],
)
def test_a_long_secret_is_found_anywhere_and_a_short_one_as_a_word(secret: str, said: str, shown: str) -> None:
    assert aliases(secret).applied(said) == shown


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        quote(SECRET, safe=""),
        base64_of(SECRET),
        base64_of(SECRET).rstrip("="),
    ],
    ids=["as it stands", "quoted", "base64", "base64 without padding"],
)
def test_a_secret_is_found_in_the_forms_in_which_programs_write_it(form: str) -> None:
    shown = aliases(SECRET).applied(f"sent {form} to it")
    assert shown.rstrip("= ").startswith("sent ***")
    assert form.rstrip("=") not in shown


@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_secret_with_signs_is_found_in_json(ascii_only: bool) -> None:
    secret = 'pässword"with\\signs'
    said = json.dumps({"answer": secret}, ensure_ascii=ascii_only)
    assert aliases(secret).applied(said) == '{"answer": "***"}'


def test_of_several_secrets_the_longer_one_is_found() -> None:
    assert aliases("abcdefgh", "abcdefgh12345").applied("abcdefgh12345 abcdefgh") == "*** ***"


@pytest.mark.parametrize("line", KEY.splitlines()[1:3])
def test_a_secret_of_several_lines_is_found_line_by_line(line: str) -> None:
    assert aliases(KEY).applied(f"| {line} |") == "| *** |"
    assert aliases(KEY.replace("\n", "\r\n")).applied(f"| {line} |") == "| *** |"
    assert line not in aliases(KEY).applied(KEY.replace("\n", "\\n")[:-40])


def test_short_lines_of_a_secret_are_words_that_anybody_may_say() -> None:
    assert aliases(KEY).applied("short==") == "short=="


@given(st.text(alphabet="ab.-_ :/", max_size=30))
def test_where_nothing_is_hidden_nothing_changes(said: str) -> None:
    assert Aliases().applied(said) == said


# --- files that cannot be rewritten


@given(
    before=st.binary(max_size=40),
    after=st.binary(max_size=40),
    secret=st.text(alphabet=string.ascii_letters + string.digits + "äß", min_size=8, max_size=20),
    chunk=st.integers(1, 30),
)
def test_a_secret_is_found_in_a_file_wherever_it_lies(before: bytes, after: bytes, secret: str, chunk: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(masks, "CHUNK_BYTES", chunk)
        held = mask(MY_TOKEN=secret)
        assert held.is_held_by(io.BytesIO(before + secret.encode() + after))
        assert held.is_held_by(io.BytesIO(before + base64_of(secret).rstrip("=").encode() + after))
        for most in (before, after):
            assert held.is_held_by(io.BytesIO(most)) is (secret.encode() in most)


def test_an_address_or_a_short_secret_does_not_keep_a_file_back() -> None:
    held = Mask(aliases("root1", lab="board.example"))
    assert not held.is_held_by(io.BytesIO(b"root1 at board.example"))


def test_where_nothing_is_known_a_file_holds_nothing() -> None:
    assert not Mask(Aliases()).is_held_by(io.BytesIO(b"anything at all"))


# --- what shows by its form

TOKENS = {
    "GitHub": "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "GitHub's Actions": "ghs_16C7e42F292c6912E7710c838347Ae178B4a",
    "GitHub, fine-grained": "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123",
    "GitLab": "glpat-Zx1Yc2Vb3Nm4As5Df6Gh",
    "Slack": "xoxb-123456789012-1234567890123-AbCdEfGhIjKl",
    "AWS": "AKIAIOSFODNN7EXAMPLE",
    "AWS, for a session": "ASIAIOSFODNN7EXAMPLE",
    "Hugging Face": "hf_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh",
    "PyPI": "pypi-AgEIcHlwaS5vcmcCJDU2Nzg5YWJjLWRlZjAtMTIzNA",
    "npm": "npm_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
}


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
@pytest.mark.parametrize("around", ["{}", "with {}, as", "'{}'", "TOKEN={}", "https://{}@host.example/x", "({})\n"])
def test_tokens_of_known_makers_are_hidden(token: str, around: str) -> None:
    shown = without_patterns(around.format(token))
    assert token not in shown
    assert token[-8:] not in shown


#: Said → shown.
MASKED: Mapping[str, tuple[str, str]] = {
    "key": (f"read\n{KEY}done", "read\n***\ndone"),
    "two keys": (f"{KEY}and\n{KEY}", "***\nand\n***\n"),
    "key that is cut off": (f"read\n{KEY[:90]}", "read\n***"),
    "RSA key": ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "***"),
    "PKCS 8 key": ("-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----", "***"),
    "address with a password": ("https://ci:pa%2Fss@pypi.example/simple", "https://***@pypi.example/simple"),
    "address with an empty user": ("redis://:s3cret99@cache/0", "redis://***@cache/0"),
    "bearer": ("Authorization: Bearer abc.def-123_x/y+z==", "Authorization: Bearer ***"),
    "bearer in small letters": ("authorization: bearer abcdefgh1", "authorization: bearer ***"),
    "basic": ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "Authorization: Basic ***"),
    "header in JSON": ('{"Authorization": "Bearer abcdefgh1"}', '{"Authorization": "Bearer ***"}'),
    "password=": ("password=hunter2", "password=***"),
    "password in an environment": ("J6_PASSWORD=hunter2\nA=b", "J6_PASSWORD=***\nA=b"),
    "password in YAML": ("password: hunter2  # ours", "password: ***  # ours"),
    "password in JSON": ('{"password": "hunter2", "port": 22}', '{"password": "***", "port": 22}'),
    "password in Python": ("login(password='hunter2', port=22)", "login(password='***', port=22)"),
    "password in capitals": ("PASSWORD = hunter2", "PASSWORD = ***"),
    "passphrase": ("passphrase: hunter2", "passphrase: ***"),
    "secret": ("client_secret=abcd1234", "client_secret=***"),
    "API key": ("api-key: abcd1234, api_key=abcd1234", "api-key: ***, api_key=***"),
    "AWS secret": ("aws_secret_access_key = wJalr/K7MDENG", "aws_secret_access_key = ***"),
    "access token": ("access_token=abcd1234", "access_token=***"),
    "--password": ("curl --password hunter2 host", "curl --password *** host"),
    "--password=": ("curl --password=hunter2 host", "curl --password=*** host"),
    "--token": ("tool --token abcd1234", "tool --token ***"),
    "--api-key": ("tool --api-key 'abcd1234'", "tool --api-key '***'"),
    "sshpass -p": ("sshpass -p hunter2 ssh root@board", "sshpass -p *** ssh root@board"),
    "sshpass -pX": ("sshpass -phunter2 ssh root@board", "sshpass -p*** ssh root@board"),
    "query": ("GET /x?token=abcd1234&n=1", "GET /x?token=***&n=1"),
    "signed query": (
        "/x?X-Amz-Date=20260101&X-Amz-Signature=abcd12",
        "/x?X-Amz-Date=***&X-Amz-Signature=***",
    ),
    "query of a blob": ("/x?sv=2024&sig=ab%2Fcd%3D", "/x?sv=2024&sig=***"),
    "e-mail": ("ask jo.doe+ci@mail.example.com.", "ask (address)."),
    "MAC": ("eth0 00:1a:2B:3c:4d:5E up", "eth0 (address) up"),
    "IPv4": ("no route to 192.168.1.10", "no route to (address)"),
    "IPv4 with a port": ("10.0.0.7:22: refused", "(address):22: refused"),
    "IPv4 of a user": ("root@10.0.0.7", "root@(address)"),
    "IPv4 in an address": ("http://10.0.0.7/x", "http://(address)/x"),
    "IPv4 at the end": ("it is 10.0.0.7.", "it is (address)."),
    "network": ("10.0.0.0/8", "(address)/8"),
    "IPv6": ("2001:db8::17 is away", "(address) is away"),
    "IPv6 in full": ("2001:db8:0:0:0:0:0:17", "(address)"),
    "IPv6 with a port": ("[2001:db8::17]:22", "[(address)]:22"),
    "IPv6 of a link": ("fe80::1%eth0", "(address)"),
}


@pytest.mark.parametrize(("said", "shown"), MASKED.values(), ids=MASKED)
def test_what_looks_like_a_secret_or_an_address_is_hidden(said: str, shown: str) -> None:
    assert without_patterns(said) == shown


#: Said, and what of it must not be shown.
HIDDEN: Mapping[str, tuple[str, str]] = {
    "IPv4 behind =": ("--host=192.168.1.10", "192.168"),
    "IPv4 of a server": ("server 10.0.0.7 is away", "10.0.0"),
    "IPv4 of a receiver": ("receiver: 10.0.0.7", "10.0.0"),
    "IPv4 below a line that ends in =": ("YWJjZA==\n10.0.0.7 is away", "10.0.0"),
    "IPv4 within IPv6": ("::ffff:10.1.2.3", "1.2.3"),
    "header with another word": ("Authorization: token 0123456789abcdef0123", "0123456789"),
    "header of GitLab": ("PRIVATE-TOKEN: abcdefgh12345", "abcdefgh"),
    "token in an environment": ("HUB_TOKEN=abcdefgh12345", "abcdefgh"),
    "token behind its kind": ("access_token: Bearer abcdefgh12345", "abcdefgh"),
    "password of several words": ('{"password": "correct horse battery"}', "battery"),
    "password with signs in quotes": ('password="a$b&cdefgh"', "cdefgh"),
    "password with signs": ("password=hun$ter2xyz", "ter2xyz"),
    "password as a word of a list": ('["sshpass", "-p", "hunter2x", "ssh"]', "hunter2x"),
    "password as an entry of a list": ("- --password\n- hunter2x\n", "hunter2x"),
    "key without its beginning": (KEY.partition("\n")[2], "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ"),
    "PGP key": (
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQHYBGZ0example\n-----END PGP PRIVATE KEY BLOCK-----",
        "lQHYBGZ0example",
    ),
}


@pytest.mark.parametrize(("said", "secret"), HIDDEN.values(), ids=HIDDEN)
def test_nothing_of_it_is_left(said: str, secret: str) -> None:
    assert secret not in without_patterns(said)


UNCHANGED = [
    "hbdk 4.9.7",
    "version 1.2.3.4",
    "Version: 1.2.3.4",
    "opencv-python==4.9.0.80",
    "UCP 3.7.3_(4.1.17 HBRT)",
    "onnxruntime 1.20.1, numpy 1.26.4",
    "127.0.0.1:8080 and ::1",
    "0.0.0.0:22 and [::]:22",
    "999.1.1.1",
    "12:34:56",
    "2026-01-02T12:34:56.789Z",
    "2026-01-02 12:34:56,789 INFO",
    "1x3x224x224",
    "(1, 3, 224, 224)",
    "[1, 3, 224, 224] float32",
    "std::vector<float>",
    "a::b",
    "c10::Error",
    "at::native::add",
    "c10::add",
    "x = x[:, ::2]",
    "x[1::2], x[::-1], x[0:3:1]",
    "/model.0/conv/Conv_output_0",
    "onnx::Conv_123",
    "model.22.dfl.conv.weight",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "SHA-256 9f86d081884c7d659a2feaa0c55ad015",
    "/home/me/models/net_quantized_model.bc",
    "C:\\models\\net.onnx",
    "0.123456 -1.5e-07 3.14159265",
    "cam_192.168.1.5_0001",
    "192.168.1.5_0001.npz",
    "uses: actions/checkout@v4",
    "uses: driftgate/driftgate@2f1c3b0a9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a",
    "${J6_HOST}, ${J6_PASSWORD}",
    "password: ${J6_PASSWORD}",
    "password: $J6_PASSWORD",
    "password: null",
    'password = "none"',
    "--token=${{ secrets.TOKEN }}",
    "a password is not written into the configuration",
    "tokens 12, key frames 3",
    "Basic optimizations of ONNX Runtime",
    "cosine 0.999987, limit ≥ 0.99",
    "node “/head/Softmax” (Softmax) → ⏎ 校准",
    "",
]


@pytest.mark.parametrize("said", UNCHANGED)
def test_what_is_neither_stays_as_it_is(said: str) -> None:
    assert without_patterns(said) == said


@pytest.mark.parametrize(("catalogue", "language"), [(ENGLISH, "en"), (CHINESE, "zh")], ids=["English", "Chinese"])
@pytest.mark.parametrize("word", ["word", "/a/net.onnx", "7"])
def test_what_we_say_ourselves_stays_as_it_is(catalogue: Mapping[str, str], language: str, word: str) -> None:
    made = mask(MY_TOKEN=SECRET)
    changed = {}
    for code, sentence in catalogue.items():
        names = {name for _, name, _, _ in string.Formatter().parse(sentence) if name}
        with in_language(language):
            told = text(Message(code, tuple((name, word) for name in sorted(names))))
        if made.text(told) != told:
            changed[told] = made.text(told)
    assert changed == {}


# --- properties

PLAIN = st.text(alphabet=string.ascii_letters + string.digits + " \n,;()[]<>|/%äλ中", max_size=80)
SAID = st.lists(
    st.one_of(
        PLAIN,
        st.sampled_from([said for said, _ in (*MASKED.values(), *HIDDEN.values())]),
        st.sampled_from([*TOKENS.values(), *UNCHANGED, "lab", "board.example", SECRET, quote(SECRET, safe="")]),
    ),
    max_size=6,
)
#: Printable, without blanks; without the star that a mask writes, and the slash that a path begins with.
SIGNS = "".join(sign for sign in string.printable if not sign.isspace() and sign not in "*/")
SECRETS = st.text(alphabet=SIGNS + "äßλ中é", min_size=8, max_size=40)


@settings(max_examples=300)
@given(SAID, st.sampled_from([" ", "\n", ", ", ": "]))
@example(["password=version 1.2.3.4"], " ")
@example(["Basic YWJjZGVmZw==", "10.0.0.7"], "\n")
def test_what_is_masked_stays_as_it_is(said: list[str], between: str) -> None:
    made = Mask(aliases(SECRET, lab="board.example"))
    once = made.text(between.join(said))
    assert made.text(once) == once


@given(PLAIN.filter(lambda said: "basic" not in said.lower() and "bearer" not in said.lower()))
def test_what_has_none_of_the_forms_is_handed_back_itself(said: str) -> None:
    assert mask(MY_TOKEN=SECRET).text(said) is said


@settings(max_examples=300)
@given(SECRETS, st.text(max_size=30), st.text(max_size=30))
def test_a_secret_never_survives_wherever_it_is_planted(secret: str, before: str, after: str) -> None:
    made = mask(MY_TOKEN=secret)
    for form in (secret, quote(secret, safe=""), base64_of(secret).rstrip("=")):
        shown = made.text(f"{before}{form}{after}")
        assert form not in shown
        assert "***" in shown


@given(st.lists(SECRETS, min_size=2, max_size=4), st.text(max_size=20))
def test_of_several_secrets_none_survives(secrets: list[str], between: str) -> None:
    made = mask_of({f"N{number}_TOKEN": secret for number, secret in enumerate(secrets)})
    shown = made.text(between.join(secrets))
    assert [secret for secret in secrets if secret in shown] == []


# --- what an environment hides


@pytest.mark.parametrize(
    "name",
    [
        "MY_TOKEN",
        "GITHUB_TOKEN",
        "my_token",
        "CLIENT_SECRET",
        "AWS_SECRET_ACCESS_KEY",
        "J6_PASSWORD",
        "DB_PASSWD",
        "MYSQL_PWD",
        "KEY_PASSPHRASE",
        "GOOGLE_CREDENTIALS",
        "OPENAI_API_KEY",
        "APIKEY",
        "DEPLOY_KEY",
        "SSH_PRIVATE_KEY",
        "AZURE_PAT",
        "J6_PASS",
        "SSHPASS",
    ],
)
def test_a_variable_is_a_secret_by_its_name(name: str) -> None:
    assert mask_of({name: "abcdefgh1234"}).text("it is abcdefgh1234.") == "it is ***."


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PWD", "/srv/project"),
        ("OLDPWD", "/srv/former"),
        ("HOME", "/home/worker"),
        ("PATH", "/usr/local/bin:/usr/bin"),
        ("SSH_AUTH_SOCK", "/tmp/ssh-XXXX/agent.1"),
        ("KEYBOARD_LAYOUT", "de-latin1-nodeadkeys"),
        ("PATTERN", "some-pattern-here"),
        ("COMPASS", "north-by-northwest"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("MY_TOKEN", ""),
        ("MY_TOKEN", "short12"),
        ("MY_TOKEN", "  short12  "),
    ],
)
def test_another_variable_or_a_short_value_hides_nothing(name: str, value: str) -> None:
    said = f"it is {value} and no other"
    assert mask_of({name: value}).text(said) == said


@pytest.mark.parametrize("name", ["XAUTHORITY", "SSH_PRIVATE_KEY", "TOKEN_FILE"])
def test_the_path_of_a_secret_is_none(name: str, tmp_path: Path) -> None:
    there = tmp_path / "credentials"
    there.write_text("abcdefgh")
    said = f"{there} cannot be read"
    assert mask_of({name: str(there)}).text(said) == said


def test_a_path_that_is_not_there_may_be_a_secret() -> None:
    assert mask(MY_TOKEN="/Zm9vYmFyYmF6/xyz").text("it is /Zm9vYmFyYmF6/xyz") == "it is ***"


def test_a_value_that_is_no_path_at_all_is_a_secret() -> None:
    long = "/" + "Ab1" * 2000
    assert mask(MY_TOKEN=long, A_KEY="/with\0zero").text(f"{long} </with\0zero>") == "*** <***>"


def test_bytes_that_are_no_text_are_a_secret_as_well() -> None:
    assert mask(MY_TOKEN="abcdefgh\udcff").text("<abcdefgh\udcff>") == "<***>"


@pytest.mark.parametrize("name", ["PIP_INDEX_URL", "HTTPS_PROXY", "DATABASE"])
@pytest.mark.parametrize("said", ["abc%2Fdefgh", "abc/defgh"])
def test_the_password_of_an_address_is_hidden_by_itself(name: str, said: str) -> None:
    made = mask_of({name: "https://ci:abc%2Fdefgh@pypi.example/simple"})
    assert made.text(f"it is {said}.") == "it is ***."
    assert made.text("ci and pypi.example") == "ci and pypi.example"


def test_an_address_without_a_password_hides_nothing() -> None:
    said = "https://pypi.example/simple for ci, git and username"
    made = mask_of({"URL": "https://pypi.example/simple", "A": "ssh://git@host/x", "B": "ftp://username:username@host"})
    assert made.text(said) == said


def test_what_is_known_already_stays_known() -> None:
    made = mask_of({"MY_TOKEN": "abcdefgh1234"}, aliases("hunter2", lab="board.example"))
    assert made.text("board.example: hunter2, abcdefgh1234") == "lab: ***, ***"


# --- data


class Kind(str, Enum):
    """What is no text, though it is one."""

    PASSWORD = "password=hunter2"


@dataclass(frozen=True, slots=True)
class Inner:
    """Data within data."""

    text: str
    number: float = 0.5


@dataclass(frozen=True)
class Outer:
    """Data of every kind."""

    kind: Kind
    inner: Inner
    many: tuple[Inner, ...] = ()
    pairs: tuple[tuple[str, int | None], ...] = ()
    flag: bool = True
    path: Path = Path("x")
    nothing: None = None


def test_data_that_hides_nothing_comes_back_itself() -> None:
    data = Outer(Kind.PASSWORD, Inner("plain"), (Inner("a"), Inner("b")), (("n", 1), ("m", None)))
    made = mask(MY_TOKEN=SECRET)
    assert made.value(data) is data
    for value in (("a", 1), ["a"], 3, 0.5, None, True, Kind.PASSWORD, data.many):
        assert made.value(value) is value
    assert made.value({"a": ("b",)}) == {"a": ("b",)}


def test_every_text_of_data_is_masked_and_the_rest_stays() -> None:
    data = Outer(Kind.PASSWORD, Inner(SECRET), (Inner("a"), Inner(f"<{SECRET}>")), ((SECRET, 1), ("m", None)))
    masked = mask(MY_TOKEN=SECRET).value(data)
    assert masked == Outer(Kind.PASSWORD, Inner("***"), (Inner("a"), Inner("<***>")), (("***", 1), ("m", None)))
    assert masked.kind is Kind.PASSWORD
    assert masked.many[0] is data.many[0]
    assert data.inner.text == SECRET


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (SECRET, "***"),
        ([SECRET, 1], ["***", 1]),
        ((SECRET, (SECRET,)), ("***", ("***",))),
        ({SECRET: 1, "a": [SECRET]}, {"***": 1, "a": ["***"]}),
        (message("x", why=SECRET, names=("a", SECRET), n=3), message("x", why="***", names=("a", "***"), n=3)),
    ],
    ids=["text", "list", "tuple", "dict", "message"],
)
def test_texts_are_masked_in_whatever_they_lie(value: object, wanted: object) -> None:
    assert mask(MY_TOKEN=SECRET).value(value) == wanted


# --- facts


def facts() -> Facts:
    """The healthy chain, in which everything that a tool or a machine says tells something."""
    found, _ = healthy_pair()
    told = message("worker-died", stage="onnx", tail=SECRET)
    loose = tuple(replace(one, board=f"{one.board} {SECRET}") for one in found.environments)
    ids = {old.id: new.id for old, new in zip(found.environments, loose, strict=True)}
    runs = tuple(
        replace(run, environment=ids[run.environment], outcome=RunOutcome.PARTIAL, reason=told, notes=(told,))
        for run in found.runs
    )
    return replace(
        found,
        plan=replace(found.plan, subject="jo@mail.example", target="10.0.0.7"),
        runs=runs,
        environments=loose,
        tool_facts=(ToolFacts("log", "log", (("selected", SECRET), ("count", 3))),),
        problems=(Problem("onnx", "y", told),),
        investigations=(
            Investigation(
                "pytorch..onnx",
                pairs=(Pair("10.0.0.7", "10.0.0.7", "name", 1.0),),
                notes=(told,),
                explanations=(Explanation("stale-artifact", True, ((SECRET, 1.0, ""),), subjects=(SECRET,)),),
            ),
        ),
    )


def test_what_tools_and_machines_say_is_masked_in_facts() -> None:
    masked = mask(MY_TOKEN=SECRET).facts(facts())
    assert SECRET not in repr(masked)
    told = message("worker-died", stage="onnx", tail="***")
    assert {run.reason for run in masked.runs} == {told}
    assert {run.notes for run in masked.runs} == {(told,)}
    assert masked.problems == (Problem("onnx", "y", told),)
    assert masked.tool_facts[0].values == (("selected", "***"), ("count", 3))
    assert masked.investigations[0].notes == (told,)
    assert masked.investigations[0].explanations[0].subjects == ("***",)


def test_runs_still_name_environments_that_are_there() -> None:
    before, masked = facts(), mask(MY_TOKEN=SECRET).facts(facts())
    assert {one.id for one in masked.environments}.isdisjoint(one.id for one in before.environments)
    names = {one.id: one for one in masked.environments}
    was = {one.id: one for one in before.environments}
    for old, new in zip(before.runs, masked.runs, strict=True):
        assert names[new.environment].provider == was[old.environment].provider
        assert names[new.environment].board.endswith(" ***")


def test_subjects_samples_and_stages_are_the_users_own_and_stay() -> None:
    before = facts()
    masked = mask(MY_TOKEN=SECRET).facts(before)
    assert masked.plan is before.plan
    assert masked.measurements is before.measurements
    assert masked.recordings is before.recordings
    assert masked.investigations[0].pairs is before.investigations[0].pairs
    assert [(run.id, run.stage, run.leg) for run in masked.runs] == [
        (run.id, run.stage, run.leg) for run in before.runs
    ]


def test_facts_that_hide_nothing_are_the_same() -> None:
    found, _ = healthy_pair()
    assert mask(MY_TOKEN=SECRET).facts(found) == found


def test_masked_facts_can_be_written_and_read_again(tmp_path: Path) -> None:
    masked = mask(MY_TOKEN=SECRET).facts(facts())
    write_all(tmp_path, encode_results(Results(Tool("driftgate", "1"), (masked,))))
    (read,) = read_results(tmp_path).facts
    assert read.environments == masked.environments
    assert read.runs == masked.runs


def test_versions_of_an_environment_are_no_addresses() -> None:
    environment = Environment(
        "CUDAExecutionProvider", versions=(("opencv-python", "4.9.0.80"), ("tensorrt", "8.6.1.6"))
    )
    found = Facts(healthy_pair()[0].plan, environments=(environment,))
    assert mask().facts(found).environments == (environment,)


@pytest.mark.parametrize(
    "token", ["ghp_" + "a1B2" * 9, "AKIA" + "A1" * 8, "-----BEGIN EC PRIVATE KEY-----", "hf_" + "x" * 34]
)
def test_a_token_in_a_file_that_cannot_be_rewritten_is_found_by_its_form(token: str) -> None:
    for before in (b"", b"\x00\xff" * 700_000):
        assert mask().is_held_by(io.BytesIO(before + b"\x00" + token.encode() + b"\x00" * 10))
    assert not mask().is_held_by(io.BytesIO(bytes(range(256)) * 8192))


def test_a_token_that_is_the_user_of_an_address_is_masked() -> None:
    assert without_patterns("https://abcdefghij0123456789@host.example/x") == "https://***@host.example/x"
