# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: sliders, layers, numbers and messages against the library."""

import re
from contextlib import closing
from http.client import HTTPConnection

import numpy as np
import pytest
import viser
from page_bench import running
from robots import robot

import mbs_dynamics as mbs
from mbs_dynamics import view
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.integrate import simulate
from mbs_dynamics.resources import robot_path
from mbs_dynamics.view.layers import LAYERS
from mbs_dynamics.view.options import PageOptions
from mbs_dynamics.view.page import Page
from mbs_dynamics.view.posing import Posing, slider_ranges
from mbs_dynamics.view.server import Server

ARM = mbs.Model.from_urdf(robot_path("arm7"))
Q = np.array([0.3, -0.5, 0.7, -1.1, 0.2, 0.9, -0.4])
QD = np.array([0.5, -0.2, 0.8, -1.0, 1.5, -0.7, 0.3])

EXTRA_LINK = """
<link name="extra"><visual><geometry><mesh filename="package://no/a.stl"/></geometry></visual></link>
<joint name="x" type="fixed"><parent link="tool"/><child link="extra"/></joint>
</robot>
"""


@pytest.fixture
def page():
    shown = Page(ARM, PageOptions(robot_path("arm7"), port=0))
    yield shown
    shown.close()


@pytest.fixture(scope="module")
def served():
    """Serve a page, and return its port."""
    started = Server(0, "arm7")
    yield started.port
    started.close()


def drawn(page, layer):
    """Return viser's handles of a layer."""
    return page.canvas.handles(f"layers/{layer}")


def test_numbers_follow_a_slider(see, page):
    posing = Posing(page, Q, QD)
    with running(page, posing):
        seen = see(page.address)
        seen.slide("joint2", 0.8)
        q = Q.copy()
        q[1] = 0.8
        assert seen.until(lambda: np.allclose(posing.q, q))
        seen.tab("Numbers")
        torques = mbs.gravity_torques(ARM, q)

        def said():
            rows = seen.table("joints")[1:]
            return [[float(cell.removesuffix(" %")) for cell in row[1:]] for row in rows]

        expected = [q, QD, torques, 100.0 * np.abs(torques) / ARM.effort_limits]
        assert seen.until(lambda: np.allclose(np.transpose(said())[:3], expected[:3], atol=6e-4))
        np.testing.assert_allclose(np.transpose(said())[3], expected[3], atol=0.51)
        assert seen.errors == []
        hosts = {url for url in seen.requested if not url.startswith(("blob:", "data:"))}
        assert {url.split("/")[2] for url in hosts} == {page.address.split("/")[2]}


def test_each_layer_can_be_switched(see, page):
    with running(page, Posing(page, Q, QD)):
        seen = see(page.address)
        seen.tab("Layers")
        for layer in LAYERS:
            if layer.name == "applied wrench":  # there is none
                continue
            box = seen.box(layer.name)
            for _ in range(2):
                box.click()
                shown = box.is_checked()
                assert seen.until(lambda name=layer.name, s=shown: bool(drawn(page, name)) == s)
            for _, words in layer.legend:
                assert seen.page.get_by_text(words, exact=True).first.is_visible()
        seen.box("meshes").click()
        assert seen.until(lambda: not any(mesh.visible for mesh in page.meshes))
        assert seen.errors == []


def test_torques_include_gravity_payload_and_force(see, page):
    posing = Posing(page, Q, QD)
    with running(page, posing):
        seen = see(page.address)
        seen.slide("payload, kg", 3)
        posing._gravity.value = (1.0, 2.0, -9.0)
        posing._force.value = (10.0, 0.0, -5.0)
        page.touch()
        body = page.body.value
        model = ARM.with_gravity((1.0, 2.0, -9.0)).with_payload(body, 3.0)
        J = mbs.jacobian(ARM, Q, body, representation="hybrid")
        expected = mbs.gravity_torques(model, Q) - J[3:].T @ [10.0, 0.0, -5.0]
        seen.tab("Numbers")

        def said():
            return [float(row[3]) for row in seen.table("joints")[1:]]

        assert seen.until(lambda: np.allclose(said(), expected, atol=6e-4))
        assert drawn(page, "applied wrench")


def test_inverse_kinematics_follows_a_dragged_body(page):
    posing = Posing(page, Q)
    page.refresh(posing)
    target = mbs.forward_kinematics(ARM, Q, bodies=["tool"])[0]
    target[:3, 3] += [0.03, -0.02, -0.04]
    page.body.value = "tool"
    posing._handle.position = target[:3, 3]
    posing._dragged(None)
    page.refresh(posing)
    reached = mbs.forward_kinematics(ARM, posing.q, bodies=["tool"])[0]
    np.testing.assert_allclose(reached, target, atol=1e-3)
    assert [slider.value for slider in posing._positions] == pytest.approx(posing.q, abs=5.1e-4)
    posing._handle.position = (5.0, 0.0, 0.0)
    posing._dragged(None)
    page.refresh(posing)
    assert "does not reach the target" in page._status.content
    assert (posing.q >= ARM.lower).all()
    assert (posing.q <= ARM.upper).all()


def test_the_initial_camera_of_the_server_stays_unset_before_a_browser_is_connected(page):
    """Viser may apply it after the camera that fits the size of the browser."""
    unset = page.server.initial_camera.position
    page.refresh(Posing(page, Q, QD))
    np.testing.assert_array_equal(page.server.initial_camera.position, unset)


def test_the_view_is_fitted_from_the_direction_of_the_camera(see, page):
    posing = Posing(page, Q)
    with running(page, posing):
        seen = see(page.address)
        assert seen.until(page.server.get_clients)
        (client,) = page.server.get_clients().values()
        assert seen.until(lambda: page.cameras.points is not None and client.camera.image_height)
        way, target = np.array([0.0, -1.0, 0.2]), client.camera.look_at
        client.camera.position = target + 30.0 * way
        client.camera.look_at = target  # setting the position has moved it
        seen.page.get_by_text("fit the view", exact=True).click()

        def fitted():
            back = client.camera.position - client.camera.look_at
            distance = np.linalg.norm(back)
            return distance < 10.0 and np.allclose(
                back / distance, way / np.linalg.norm(way), atol=0.02
            )

        assert seen.until(fitted)
        assert seen.errors == []


def test_a_click_on_a_link_selects_and_names_it(page):
    page.refresh(Posing(page, Q))
    part = next(part for part in page.parts if part.name.startswith("link4/"))
    page._pick(part)
    assert page.body.value == "link4"
    (label,) = page.canvas.handles("picked")
    assert label.text == "link4, joint4"
    assert label.name.startswith("/robot/3/")


def test_drawings_are_fixed_to_the_frames_of_their_bodies(page):
    posing = Posing(page, Q)
    page.refresh(posing)
    discs = drawn(page, "torques")[:7]  # labels follow
    assert [each.name.split("/")[2] for each in discs] == [str(i) for i in range(7)]
    placed = [np.array(each.batched_positions) for each in discs]
    posing.move(np.zeros(7))
    page.refresh(posing)
    for before, disc in zip(placed, discs, strict=True):
        np.testing.assert_array_equal(disc.batched_positions, before)
    poses = mbs.forward_kinematics(ARM, np.zeros(7))
    for i, pose in enumerate(poses):
        np.testing.assert_allclose(page.canvas.frames[i].position, pose[:3, 3])


def test_robots_and_motions_are_shown_from_python(tmp_path, see):
    ball = view.Visual("tool", np.eye(4), view.Sphere(0.1), (1.0, 0.0, 0.0, 1.0))
    options = view.PageOptions(robot_path("arm7"), geometry=[ball], port=0)
    with closing(view.show(ARM, Q, options=options)) as shown:
        assert shown.address in shown._repr_html_()
        seen = see(shown.address)
        shown.move(np.zeros(7))
        seen.tab("Numbers")
        assert seen.until(lambda: float(seen.table("joints")[1][1]) == 0.0)
        with pytest.raises(ArgumentError, match="q must be 7 finite numbers"):
            shown.move([1.0])
    page = tmp_path / "motion.html"
    played = view.play(ARM, simulate(ARM, Q, duration=0.2), options=options)
    with pytest.raises(ArgumentError, match="plays a motion"):
        played.move(Q)
    played.save(page)
    assert page.stat().st_size > 500_000
    with pytest.raises(ArgumentError):
        view.show(ARM, options=view.PageOptions(layers=["shadows"]))
    with pytest.raises(mbs.UnknownBodyError, match="no body 'hand'"):
        view.show(ARM, options=view.PageOptions(geometry=[ball._replace(link="hand")]))


@pytest.mark.parametrize("name", ["panda.urdf", "g1_29dof_rev_1_0.urdf"])
def test_sliders_have_the_limits_of_the_joints(name):
    model = mbs.Model.from_urdf(robot(name))
    low, high = slider_ranges(model)
    bounded = np.isfinite(model.lower)
    np.testing.assert_array_equal(low[bounded], model.lower[bounded])
    assert (low < high).all()


def test_the_state_survives_a_closed_page(see, page):
    posing = Posing(page, Q)
    with running(page, posing):
        seen = see(page.address)
        seen.page.close()
        again = see(page.address)
        again.tab("Numbers")
        assert float(again.table("joints")[1][1]) == pytest.approx(Q[0], abs=6e-4)


def test_an_error_is_shown_until_it_is_resolved(page):
    class Source:
        error = True

        def due(self):
            return False

        def scene(self, body, representation):
            if self.error:
                raise ArgumentError("nothing works <today>")
            return None

    source = Source()
    page.refresh(source)
    assert "nothing works &lt;today&gt;" in page._status.content
    source.error = False
    page.refresh(source)
    assert not page._status.visible


@pytest.mark.parametrize(
    ("host", "origin", "valid"),
    [
        ("localhost:{port}", "http://localhost:{port}", True),
        ("LOCALHOST:9000", "http://LOCALHOST:9000", True),  # a port that ssh forwards
        ("[::1]:{port}", None, True),
        ("127.0.0.1:{port}", "http://127.0.0.1:{port}", True),
        ("evil.example:{port}", "http://evil.example:{port}", False),
        ("127.0.0.1.evil.example", None, False),
        ("localhost:{port}@evil.example", None, False),
        (None, None, False),
        ("127.0.0.1:{port}", "http://evil.example", False),
        ("127.0.0.1:{port}", "null", False),
        ("127.0.0.1:{port}", "https://127.0.0.1:{port}", False),
        ("127.0.0.1:{port}", "http://127.0.0.1:1", False),
    ],
)
@pytest.mark.parametrize("upgrade", [False, True])
def test_only_pages_of_this_server_get_answers(served, host, origin, valid, upgrade):
    connection = HTTPConnection("127.0.0.1", served)
    connection.putrequest("GET", "/", skip_host=True)
    given = {"Host": host, "Origin": origin}
    if upgrade:
        given |= {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
        given |= {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
        given |= {"Sec-WebSocket-Protocol": f"viser-v{viser.__version__}"}
    for name, value in given.items():
        if value is not None:
            connection.putheader(name, value.format(port=served))
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status == ((101 if upgrade else 200) if valid else 403)
    if not valid:
        assert re.search(r"refused: (Host|Origin) is ", answer.read().decode())
    connection.close()


def test_the_default_port_is_a_free_one():
    options = PageOptions(robot_path("arm7"))
    with closing(Page(ARM, options)) as first, closing(Page(ARM, options)) as second:
        assert first.address != second.address


def test_the_layers_are_those_that_are_named():
    with closing(Page(ARM, PageOptions(layers=["twist"], port=0))) as page:
        page.refresh(Posing(page, Q, QD))
        assert drawn(page, "twist")
        assert not drawn(page, "torques")
