"""Takes what a delivery puts to a FHIR server: writes each resource into a line of the file. Prints its address."""

import http.server
import sys
import threading

lines = threading.Lock()


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with lines, open(sys.argv[1], "ab") as file:
            file.write(body + b"\n")
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
