"""Tests of headgate against the server at HEADGATE_URL, with the rules of clients_test.go."""

import os
import select
import socket
import threading
import time
import traceback
import unittest

import headgate

URL = os.environ["HEADGATE_URL"]


class ClientTest(unittest.TestCase):
    def setUp(self):
        self.limits = headgate.Client(URL, token="secret", timeout=10)
        self.key = "python:" + self.id()

    def tearDown(self):
        self.limits.close()

    def test_take(self):
        answer = self.limits.take("login", self.key, 5)
        self.assertTrue(answer.allowed)
        self.assertEqual((answer.limit, answer.capacity, answer.remaining), ("5/h", 5, 0))
        self.assertEqual((answer.retry_after, answer.degraded), (0, False))
        answer = self.limits.take("login", self.key)
        self.assertFalse(answer.allowed)
        self.assertTrue(600 < answer.retry_after <= 720)
        self.assertIsNone(self.limits.take("login", self.key, 6).retry_after)
        self.assertTrue(600 < self.limits.take("login", self.key, max_wait=800).wait <= 720)
        with self.assertRaises(AttributeError):
            answer.allow

    def test_denial_is_false(self):
        answer = self.limits.take_all([{"rule": "login", "key": self.key, "cost": 5}])
        self.assertTrue(answer and answer.results[0])
        self.assertFalse(self.limits.take("login", self.key))
        self.assertFalse(self.limits.peek("login", self.key).limits[0])
        reservation = self.limits.reserve("tokens", self.key)
        self.assertTrue(reservation and reservation.commit(1))
        self.assertFalse(self.limits.reserve("tokens", self.key, 1001))

    def test_peek_refund_force_reset(self):
        self.limits.take("login", self.key, 3)
        self.assertEqual(self.limits.peek("login", self.key).limits[0].remaining, 2)
        self.assertEqual(self.limits.refund("login", self.key, 2).remaining, 4)
        answer = self.limits.take("login", self.key, 10, force=True)
        self.assertEqual((answer.allowed, answer.remaining), (False, -6))
        self.limits.reset("login", self.key)
        self.assertEqual(self.limits.peek("login", self.key).remaining, 5)

    def test_take_all(self):
        both = [{"rule": "login", "key": self.key, "cost": 4}, {"rule": "tokens", "key": self.key}]
        answer = self.limits.take_all(both)
        self.assertEqual([r.remaining for r in answer.results], [1, 999])
        answer = self.limits.take_all(both)
        self.assertFalse(answer.allowed)
        self.assertEqual([r.allowed for r in answer.results], [False, True])

    def test_inline_limit(self):
        self.assertEqual(self.limits.take(limit="7/h", key=self.key).remaining, 6)

    def test_reserve(self):
        with self.limits.reserve("tokens", self.key, 800) as reservation:
            self.assertEqual(reservation.commit(300)["refunded"], 500)
        with self.assertRaises(ZeroDivisionError):
            with self.limits.reserve("tokens", self.key, 600):
                1 / 0
        self.assertEqual(self.limits.peek("tokens", self.key).remaining, 700)
        with self.limits.reserve("tokens", self.key, 100):
            pass  # not settled: used
        self.assertEqual(self.limits.peek("tokens", self.key).remaining, 600)
        with self.assertRaises(headgate.Denied) as denied:
            with self.limits.reserve("tokens", self.key, 700):
                self.fail("entered")
        self.assertTrue(denied.exception.answer.retry_after > 0)

    def test_reserve_waits(self):
        def ahead():
            return self.limits.reserve(limit="5/s", key=self.key, max_wait=60)

        for _ in range(20):  # a busy machine may be late, but not each time
            self.limits.take(limit="5/s", key=self.key, cost=5)
            began = time.monotonic()
            with ahead() as reservation:
                self.assertGreaterEqual(time.monotonic() - began, reservation.wait)
                with ahead() as second:
                    second.commit(1)
            if reservation.wait > 0:
                break
        self.assertGreater(reservation.wait, 0)
        sleep = time.sleep
        try:
            time.sleep = lambda seconds: 1 / 0
            self.limits.take(limit="1/h", key=self.key)
            with self.assertRaises(ZeroDivisionError):
                with self.limits.reserve(limit="1/h", key=self.key, max_wait=4000):
                    self.fail("entered")
        finally:
            time.sleep = sleep
        # the interrupted one was cancelled
        self.assertTrue(self.limits.take(limit="1/h", key=self.key, max_wait=4000))

    def test_acquire(self):
        with self.limits.acquire("exports", self.key, ttl=30) as first:
            self.assertEqual((first.permits, first.in_use, first.ttl), (2, 1, 30))
            self.assertTrue(first.renew())
            with self.limits.acquire("exports", self.key):
                with self.assertRaises(headgate.Denied):
                    self.limits.acquire("exports", self.key).__enter__()
        self.assertFalse(first.release())
        self.assertEqual(self.limits.acquire("exports", self.key).in_use, 1)

    def test_permit_released_later(self):
        with self.limits.acquire("exports", self.key, after=100):
            pass
        with self.assertRaises(KeyError):
            with self.limits.acquire("exports", self.key, ttl=200, after=100):
                raise KeyError
        denied = self.limits.acquire("exports", self.key)
        self.assertFalse(denied)
        self.assertTrue(0 < denied.retry_after <= 100, denied)
        other = self.limits.acquire("exports", self.key + ":other", ttl=200, after=100)
        self.assertTrue(other.release())
        self.assertFalse(other.release())
        self.assertEqual(self.limits.acquire("exports", self.key + ":other").in_use, 2)

    def test_invalid(self):
        with self.assertRaises(headgate.Invalid) as wrong:
            self.limits.take("login", self.key, cost=0)
        self.assertEqual((wrong.exception.status, wrong.exception.field), (400, "cost"))
        self.assertIn("cost is 0; want", str(wrong.exception))
        with self.assertRaisesRegex(headgate.Invalid, "want one of rule and limit"):
            self.limits.take("login", self.key, limit="5/s")
        with self.assertRaisesRegex(headgate.Invalid, "rule is missing"):
            self.limits.peek(key=self.key)
        with self.assertRaisesRegex(headgate.Invalid, "key is missing"):
            self.limits.acquire("exports")
        with self.assertRaises(headgate.Invalid) as wrong:
            headgate.Client(URL, token="other").take("login", self.key)
        self.assertEqual(wrong.exception.status, 401)
        with self.assertRaises(ValueError):
            headgate.Client("127.0.0.1:8080")
        for bad in (-1, 0, float("nan")):
            with self.assertRaisesRegex(ValueError, "timeout is .*; want more than 0"):
                headgate.Client(URL, timeout=bad)
        headgate.Client(URL, timeout=None)

    def test_connection_is_kept(self):
        self.limits.take("tokens", self.key)
        first = self.limits._local.connection.sock.getsockname()
        self.limits.take("tokens", self.key)
        self.assertEqual(self.limits._local.connection.sock.getsockname(), first)
        self.limits._local.used -= headgate._MAX_IDLE + 1  # as if it had been idle
        self.limits.take("tokens", self.key)
        self.assertNotEqual(self.limits._local.connection.sock.getsockname(), first)

    def test_server_restarts(self):
        requests = []
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 16"

        def serve(listener):
            for _ in range(2):  # each connection answers one request, and is closed
                connection, _ = listener.accept()
                with connection:
                    requests.append(connection.recv(65536))
                    connection.sendall(head + b'\r\n\r\n{"allowed":true}')

        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(10)
            server = threading.Thread(target=serve, args=(listener,), daemon=True)
            server.start()
            client = headgate.Client("http://127.0.0.1:%d" % listener.getsockname()[1], timeout=10)
            client.take("login", self.key)
            idle = client._local.connection.sock
            self.assertTrue(select.select([idle], [], [], 10)[0], "the connection was not closed")
            self.assertTrue(client.take("login", self.key))
            server.join()
            client.close()
        self.assertEqual(len(requests), 2)

    def test_threads(self):
        def take():
            client = self.limits
            for _ in range(20):
                client.take("tokens", self.key)
            client.close()

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.limits.peek("tokens", self.key).remaining, 920)

    def test_fork(self):
        """A forked process does not read answers that are meant for its parent."""
        exhausted, fresh = self.key + ":exhausted", self.key + ":fresh"
        self.limits.take("login", exhausted, 5)  # both processes have this connection
        for _ in range(5):
            start, parent = os.pipe()
            child = os.fork()
            if child == 0:
                os._exit(self._denied_100_times(exhausted, start, parent))
            os.close(start)
            os.close(parent)  # the child starts
            for _ in range(100):
                self.assertTrue(self.limits.peek("tokens", fresh).allowed)
            self.assertEqual(os.waitpid(child, 0)[1], 0, "the child had another answer")

    def _denied_100_times(self, key, start, parent):
        try:
            os.close(parent)
            os.read(start, 1)
            for _ in range(100):
                self.assertFalse(self.limits.peek("login", key).allowed)
            return 0
        except BaseException:
            traceback.print_exc()
            return 1

    def test_unavailable(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            client = headgate.Client("http://127.0.0.1:%d" % closed.getsockname()[1])
            with self.assertRaises(headgate.Unavailable):
                client.take("login", self.key)
            closed.listen()  # accepts, and never answers
            client = headgate.Client("http://127.0.0.1:%d" % closed.getsockname()[1], timeout=0.05)
            with self.assertRaises(headgate.Unavailable):
                client.take("login", self.key)


if __name__ == "__main__":
    unittest.main()
