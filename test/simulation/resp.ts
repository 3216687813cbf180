/** RESP3 over one socket. Pushed messages come in the same stream as replies, so their order is never left to chance. */
import { createConnection, type NetConnectOpts, type Socket } from 'node:net'

export type Reply = string | number | boolean | null | Error | Reply[] | Map<Reply, Reply>

const MORE = Symbol('more bytes are needed')

class Push {
  constructor(readonly items: Reply[]) {}
}

export class RespClient {
  /** Called for every pushed message. */
  onPush: (message: Reply[]) => void = () => {}
  private readonly socket: Socket
  private readonly waiting: ((reply: Reply) => void)[] = []
  private buffer = Buffer.alloc(0)
  private offset = 0

  private constructor(to: NetConnectOpts) {
    this.socket = createConnection(to)
    this.socket.on('error', () => {})
    this.socket.on('data', (bytes) => {
      this.buffer = this.buffer.length > 0 ? Buffer.concat([this.buffer, bytes]) : bytes
      this.readReplies()
    })
  }

  static connect(to: NetConnectOpts): Promise<RespClient> {
    const client = new RespClient(to)
    return new Promise((resolve, reject) => {
      client.socket.once('connect', () => resolve(client))
      client.socket.once('error', reject)
    })
  }

  /** Errors of the store are values: the caller decides whose they are. */
  call(args: readonly (string | number)[]): Promise<Reply> {
    this.send(args)
    return new Promise((resolve) => this.waiting.push(resolve))
  }

  /** For commands that are answered by a push. */
  send(args: readonly (string | number)[]): void {
    const parts = args.map(String).map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`)
    this.socket.write(`*${args.length}\r\n${parts.join('')}`)
  }

  /** Rejects when the connection ends. */
  ended(): Promise<never> {
    return new Promise((_, reject) => this.socket.once('close', () => reject(new Error('the store has closed'))))
  }

  close(): void {
    this.socket.destroy()
  }

  private readReplies(): void {
    for (;;) {
      this.offset = 0
      let value: Reply | Push
      try {
        value = this.parse()
      } catch (error) {
        if (error === MORE) return
        throw error
      }
      this.buffer = this.buffer.subarray(this.offset)
      if (value instanceof Push) this.onPush(value.items)
      else this.waiting.shift()?.(value)
    }
  }

  private line(): string {
    const end = this.buffer.indexOf('\r\n', this.offset)
    if (end < 0) throw MORE
    const text = this.buffer.toString('utf8', this.offset, end)
    this.offset = end + 2
    return text
  }

  private bulk(length: number, skip = 0): string | null {
    if (length < 0) return null
    if (this.buffer.length < this.offset + length + 2) throw MORE
    const text = this.buffer.toString('utf8', this.offset + skip, this.offset + length)
    this.offset += length + 2
    return text
  }

  private many(length: number): Reply[] {
    return Array.from({ length }, () => this.parse() as Reply)
  }

  private parse(): Reply | Push {
    if (this.offset >= this.buffer.length) throw MORE
    const type = String.fromCharCode(this.buffer[this.offset++] as number)
    const line = this.line()
    switch (type) {
      case '+':
        return line
      case '-':
        return new Error(line)
      case ':':
      case ',':
        return Number(line)
      case '_':
        return null
      case '#':
        return line === 't'
      case '$':
        return this.bulk(Number(line))
      case '=':
        return this.bulk(Number(line), 4)
      case '*':
        return Number(line) < 0 ? null : this.many(Number(line))
      case '~':
        return this.many(Number(line))
      case '%': {
        const flat = this.many(2 * Number(line))
        return new Map(flat.flatMap((key, i) => (i % 2 === 0 ? [[key, flat[i + 1] as Reply]] : [])))
      }
      case '>':
        return new Push(this.many(Number(line)))
      default:
        throw new Error(`not RESP3: ${type}${line}`)
    }
  }
}
