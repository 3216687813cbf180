/** What a careless or hostile client can do to a port: garbage, halves of requests, resets, and malformed frames. */
import { connect, type Socket } from 'node:net'

/** A frame of a client. The mask is zero, so `payload` is sent as it is. */
function frame(first: number, payload: string | Buffer = '', length = Buffer.byteLength(payload)): Buffer {
  const head = length < 126 ? Buffer.from([first, 0x80 | length]) : Buffer.alloc(10)
  if (length >= 126) {
    head.set([first, 0xff])
    head.writeBigUInt64BE(BigInt(length), 2)
  }
  return Buffer.concat([head, Buffer.alloc(4), Buffer.from(payload)])
}

const [TEXT, BINARY, CLOSE, PING] = [0x81, 0x82, 0x88, 0x89]

const FRAMES = [
  frame(0x83), // a reserved opcode
  frame(0xf1, 'x'), // bits of extensions that were not negotiated
  frame(BINARY, 'x', Number.MAX_SAFE_INTEGER),
  Buffer.from([BINARY, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
  frame(BINARY, 'half', 100),
  Buffer.from([TEXT, 2, 0x68, 0x69]), // without a mask
  frame(0x09), // a fragment of a ping
  frame(0x80, 'x'), // the continuation of nothing
  frame(PING, 'x'.repeat(126)),
  frame(CLOSE, 'x'), // half a code
  frame(CLOSE, Buffer.from([0, 1])),
  frame(TEXT, Buffer.from([0xc3, 0x28])), // not UTF-8
  // Well-formed, with messages that are not.
  ...['nonsense', 'null', '[]', '{"type":"ack"}', '{"type":"report"}', '{"type":"result","command_id":{}}'].map(
    (text) => frame(TEXT, text),
  ),
  ...['40{"user":', '40null', '42["x"', '451-["x",{"_placeholder":true,"num":9}]'].map((text) =>
    Buffer.concat([frame(TEXT, '40'), frame(TEXT, text)]),
  ),
  frame(BINARY, 'x'),
]

/** Where the programs take sockets, and a path that no URL can have. */
const SOCKETS = ['/ada/laptop/run-1', '/?user=ada&client_id=laptop&instance_id=run-1', '/?user=ada', '/']
SOCKETS.push('/socket.io/?EIO=4&transport=websocket', '//[')

/** A server that keeps a connection open is left, and one that closes it is waited for. */
const KEPT_MS = 1_000

type Act = (socket: Socket, answered: Promise<void>) => unknown

/** Connects, acts, and resolves when the connection is closed. */
function connection(port: number, act: Act): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    const timer = setTimeout(() => socket.resetAndDestroy(), KEPT_MS)
    const answered = new Promise<void>((first) => socket.once('data', () => first()))
    socket.on('error', () => {})
    socket.on('end', () => socket.end())
    socket.on('close', () => {
      clearTimeout(timer)
      resolve()
    })
    socket.on('connect', () => act(socket, answered))
  })
}

const upgrade = (path: string) =>
  [
    ...[`GET ${path} HTTP/1.1`, 'Host: 127.0.0.1', 'Connection: Upgrade', 'Upgrade: websocket'],
    ...['Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', '', ''],
  ].join('\r\n')
const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`
const post = (path: string, rest: string) =>
  `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n${rest}`

const reset = (socket: Socket) => socket.resetAndDestroy()

function actsOn(path: string): Act[] {
  const half = get(path).slice(0, -5)
  const bodies = [
    post(path, 'Content-Length: 100\r\n\r\n{"half'),
    post(path, 'Transfer-Encoding: chunked\r\n\r\nff\r\n{'),
  ]
  return [
    (socket) => socket.end(half),
    (socket) => socket.write(half, () => reset(socket)),
    ...bodies.flatMap((body): Act[] => [
      (socket) => socket.end(body),
      (socket) => socket.write(body, () => reset(socket)),
    ]),
    (socket) => socket.end(get(path)),
    (socket) => socket.write(get(path), () => reset(socket)),
    // In the middle of an answer, and of many.
    async (socket, answered) => {
      socket.write(get(path).repeat(8))
      await answered
      reset(socket)
    },
    (socket) => socket.write(post(path, 'Transfer-Encoding: chunked\r\n\r\nzz\r\n')),
  ]
}

const upgraded =
  (path: string, then: (socket: Socket) => unknown): Act =>
  async (socket, answered) => {
    socket.write(upgrade(path))
    await answered
    then(socket)
  }

const GARBAGE = [
  '\r\n\r\n',
  'garbage\r\n\r\n',
  '\x16\x03\x01\x02\x00\x01\x00',
  'GET / HTTP/9.9\r\n\r\n',
  '\0'.repeat(70_000),
]

/** Does all of it to `port`, and resolves when every connection has ended. */
export async function attack(port: number, paths: string[]): Promise<void> {
  const acts: Act[] = GARBAGE.flatMap((text): Act[] => [(socket) => socket.end(text), (socket) => socket.write(text)])
  acts.push(...paths.flatMap(actsOn))
  for (const path of SOCKETS) {
    acts.push((socket) => socket.write(upgrade(path), () => reset(socket)), upgraded(path, reset))
    for (const each of FRAMES)
      acts.push(
        upgraded(path, (socket) => socket.end(each)),
        upgraded(path, (socket) => socket.write(each, () => reset(socket))),
      )
  }
  for (let i = 0; i < acts.length; i += 100)
    await Promise.all(acts.slice(i, i + 100).map((act) => connection(port, act)))
}
