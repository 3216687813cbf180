/** Sends the fuzzer's bytes and takes answers off the wire, by a reading of HTTP/1.1 of its own. */
import { connect } from 'node:net'
import type { Asked, Attack } from './fuzz-requests.js'

export interface Answered {
  status: number
  headers: [name: string, value: string][]
  body: string
}

export interface Exchange {
  answers: Answered[]
  /** What came after the last whole answer. */
  rest: string
  /** The server closed, or all that was asked is answered; otherwise it kept the connection and said nothing. */
  ended: boolean
}

// Longer than any timeout of the fuzzer's servers: a request that is still pending then hangs.
const TIMEOUT_MS = 20_000

const headerOf = (headers: Answered['headers'], name: string) => headers.find(([given]) => given === name)?.[1]

function readHead(text: string): { status: number; headers: Answered['headers'] } {
  const [line = '', ...rest] = text.split('\r\n')
  const headers = rest.map((header): [string, string] => {
    const colon = header.indexOf(':')
    return [header.slice(0, colon).toLowerCase(), header.slice(colon + 1).trim()]
  })
  return { status: /^HTTP\/1\.1 \d{3} /.test(line) ? Number(line.slice(9, 12)) : 0, headers }
}

/** The body in chunks from `at`, and where it ends; `undefined` where it is not whole. */
function readChunked(text: string, at: number): { body: string; end: number } | undefined {
  for (let body = ''; ; ) {
    const line = text.indexOf('\r\n', at)
    const size = Number.parseInt(text.slice(at, line), 16)
    if (line < 0 || text.length < line + size + 4) return undefined
    if (!(size > 0)) return { body, end: line + 4 }
    body += text.slice(line + 2, line + 2 + size)
    at = line + size + 4
  }
}

/** Returns the complete chunks of an unfinished body, from `at`. */
function readPieces(text: string, at: number): string {
  for (let body = ''; ; ) {
    const line = text.indexOf('\r\n', at)
    const size = Number.parseInt(text.slice(at, line), 16)
    if (line < 0 || !(size > 0) || text.length < line + size + 4) return body
    body += text.slice(line + 2, line + 2 + size)
    at = line + size + 4
  }
}

/** The answers in `text`, in order; a stream of events is one as soon as its first frame is there. */
export function readAnswers(
  text: string,
  asked: readonly Asked[],
): { answers: Answered[]; rest: string; streaming: boolean } {
  const answers: Answered[] = []
  for (let at = 0; ; ) {
    const split = text.indexOf('\r\n\r\n', at)
    const unread = { answers, rest: text.slice(at), streaming: false }
    if (split < 0) return unread
    const { status, headers } = readHead(text.slice(at, split))
    const start = split + 4
    if (status >= 100 && status < 200) {
      at = start
      continue
    }
    if (headerOf(headers, 'content-type')?.startsWith('text/event-stream')) {
      const body = headerOf(headers, 'transfer-encoding') === 'chunked' ? readPieces(text, start) : text.slice(start)
      if (!body.includes('\n\n')) return unread
      answers.push({ status, headers, body })
      return { answers, rest: '', streaming: true }
    }
    const bodiless = asked[answers.length]?.method === 'HEAD' || status === 204 || status === 304
    const chunked = headerOf(headers, 'transfer-encoding') === 'chunked'
    const length = Number(headerOf(headers, 'content-length') ?? 0)
    const whole = bodiless
      ? { body: '', end: start }
      : chunked
        ? readChunked(text, start)
        : text.length < start + length
          ? undefined
          : { body: text.slice(start, start + length), end: start + length }
    if (whole === undefined) return unread
    answers.push({ status, headers, body: whole.body })
    at = whole.end
  }
}

/** Sends `attack` on a connection of its own, and reads until there is no more to come. */
export function send(port: number, { chunks, asked, lies, ending }: Attack): Promise<Exchange> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const received: Buffer[] = []
    const finish = (ended: boolean) => {
      clearTimeout(timer)
      socket.destroy()
      const { answers, rest } = readAnswers(Buffer.concat(received).toString('latin1'), asked)
      resolve({ answers, rest, ended })
    }
    const timer = setTimeout(() => finish(false), TIMEOUT_MS)
    socket.on('connect', () => {
      for (const chunk of chunks) socket.write(chunk)
      if (ending === 'half') socket.end()
      if (ending === 'hang-up') setImmediate(() => socket.destroy())
    })
    socket.on('data', (chunk) => {
      received.push(chunk)
      if (lies && asked.length > 1) return
      const { answers, streaming } = readAnswers(Buffer.concat(received).toString('latin1'), asked)
      if (streaming || answers.length === asked.length) finish(true)
    })
    socket.on('close', () => finish(true))
    // A server may reset a connection of which it has read enough.
    socket.on('error', () => finish(true))
  })
}
