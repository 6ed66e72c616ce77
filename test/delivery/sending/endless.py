"""
An HTTPS endpoint that answers a request with a body without end, as fast as the other side's kernel takes it.

`python3 endless.py <certificate> <key>` prints its port, and for each connection, once it broke, how many bytes of the
answer arrived at the other side's kernel: those that were acknowledged, and not what waits in this side's own buffer.
"""
import socket
import ssl
import struct
import sys

# Offset of tcpi_bytes_acked in Linux's struct tcp_info.
BYTES_ACKED = 120

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    plain, _ = listener.accept()
    connection = context.wrap_socket(plain, server_side=True)
    connection.recv(65536)
    try:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n")
        while True:
            connection.sendall(b"f" * 65536)
    except OSError:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        print(struct.unpack_from("Q", info, BYTES_ACKED)[0], flush=True)
    connection.close()
