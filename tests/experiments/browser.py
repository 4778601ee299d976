"""A headless Chromium that tests open a page in. It is driven through a pipe, so that nothing but Python's standard
library is needed."""
import base64
import json
import os
import shutil
import subprocess
import tempfile

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions",
         "--disable-background-networking",
         "--hide-scrollbars", "--allow-file-access-from-files", "--remote-debugging-pipe")


def program():
    """The path of the browser; None: there is none."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """One tab of one browser."""

    def __init__(self):
        self._profile = tempfile.mkdtemp(prefix="pmlab-browser-")
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        # The browser reads commands from descriptor 3 and writes to 4: these must not be among those that become them.
        commands, answers = (self._moved(end) for end in (commands, answers))
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "bash", program(), *FLAGS,
             f"--user-data-dir={self._profile}", "about:blank"],
            pass_fds=(commands, answers), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self._unread, self._number, self._session = b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")

    @staticmethod
    def _moved(end):
        """The same end of a pipe, above the descriptors that the browser uses."""
        kept = [end]
        while kept[-1] < 5:
            kept.append(os.dup(kept[-1]))
        for other in kept[:-1]:
            os.close(other)
        return kept[-1]

    def close(self):
        """Ends the browser."""
        self._process.terminate()
        self._process.wait(20)
        os.close(self._commands)
        os.close(self._answers)
        shutil.rmtree(self._profile, ignore_errors=True)

    def _message(self):
        while b"\0" not in self._unread:
            part = os.read(self._answers, 1 << 16)
            if not part:
                raise RuntimeError("the browser has ended")
            self._unread += part
        text, self._unread = self._unread.split(b"\0", 1)
        return json.loads(text)

    def _wait_for(self, wanted):
        while not wanted(message := self._message()):
            pass
        return message

    def call(self, method, **parameters):
        """The result of a method of the DevTools protocol."""
        self._number += 1
        number = self._number
        command = {"id": number, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        answer = self._wait_for(lambda message: message.get("id") == number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, path, width, dark=False):
        """Shows the file at a width in CSS pixels, on a light or a dark screen."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1,
                  mobile=width < 600)
        scheme = "dark" if dark else "light"
        self.call("Emulation.setEmulatedMedia", media="screen",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=f"file://{os.path.abspath(path)}")
        self._wait_for(lambda message: message.get("method") == "Page.loadEventFired")

    def value(self, script):
        """What a JavaScript expression gives in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def picture(self, path, height):
        """Writes a PNG of the top of the page."""
        width = self.value("innerWidth")
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True,
                         clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
