"""Checkstyle's XML and the formats in its manner."""

from hypothesis import given, settings
from hypothesis import strategies as st

from devbay.reports import checkstyle
from devbay.reports.records import Parsed
from devbay.reports.registry import recognised
from devbay.reports.source import Source


def read(text: str | bytes) -> Parsed:
    return checkstyle.read(Source("report.xml", data=text if isinstance(text, bytes) else text.encode()))


def listed(text: str) -> list[tuple[str, int | None, str, str, str]]:
    assert recognised(text.encode()) is checkstyle
    parsed = read(text)
    assert parsed.complete
    return [(f.own[0], f.own_line, f.kind, f.name, f.message) for f in parsed.failures]


def test_errors_belong_to_the_file_around_them() -> None:
    text = (
        '<?xml version="1.0"?><checkstyle version="3"><file name="/r/L.php">'
        '<error line="2" column="1" severity="error" message="Class &quot;l&quot;" source="PSR1.X"/>'
        '<error line="3" severity="warning" message="long" source="Y"/></file>'
        '<file name="/r/M.php"></file></checkstyle>'
    )
    assert listed(text) == [
        ("/r/L.php", 2, "error", "PSR1.X", 'Class "l"'),
        ("/r/L.php", 3, "failure", "Y", "long"),
    ]


def test_pmds_violations_have_their_message_as_text_and_a_priority() -> None:
    text = (
        '<pmd version="7"><file name="A.java">'
        '<violation beginline="4" begincolumn="2" rule="Unused" priority="3">\n'
        "Avoid unused\n</violation></file></pmd>"
    )
    assert listed(text) == [("A.java", 4, "failure", "Unused", "Avoid unused")]


def test_cppcheck_and_android_name_the_place_in_an_element_of_its_own() -> None:
    cppcheck = (
        '<results version="2"><cppcheck version="2.10"/><errors>'
        '<error id="nullPointer" severity="error" msg="Null">'
        '<location file="m.c" line="3" column="1"/><location file="m.c" line="1"/></error></errors></results>'
    )
    assert listed(cppcheck) == [("m.c", 3, "error", "nullPointer", "Null")]
    android = (
        '<issues format="6" by="lint"><issue id="NewApi" severity="Warning" message="Call" errorLine1="x()">'
        '<location file="/r/A.kt" line="9" column="5"/></issue></issues>'
    )
    assert listed(android) == [("/r/A.kt", 9, "failure", "NewApi", "Call")]


def test_a_report_without_findings_is_clean_and_a_cut_or_typed_one_is_not_complete() -> None:
    assert read('<checkstyle version="8"></checkstyle>').complete
    assert not read('<checkstyle><file name="a"><error line="1" message="x"/>').complete
    assert "document type" in (read('<!DOCTYPE a [<!ENTITY b "c">]><checkstyle/>').problem or "")


@given(
    st.binary(max_size=1_500)
    | st.lists(
        st.sampled_from(
            [
                "<checkstyle>",
                "<file name='a'>",
                "<error line='1' message='m'",
                "/>",
                "</file>",
                "<location file='b'/>",
                ">",
                "&",
            ]
        ),
        max_size=30,
    ).map(lambda parts: "".join(parts).encode())
)
@settings(max_examples=120, deadline=None)
def test_any_bytes_give_a_result(data: bytes) -> None:
    checkstyle.sniff(data)
    read(data)
