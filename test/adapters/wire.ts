/** Speaks HTTP/1.1 by hand, for what a client library would not send. */
import { connect, type Socket } from 'node:net'

export interface Answer {
  status: number
  headers: [name: string, value: string][]
  body: string
}

/** Opens a connection to a server on loopback. */
export function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket))
    socket.once('error', reject)
  })
}

/** The request text for `line` (`GET /x`): `headers` besides `Host` and `Connection: close`. */
export function requestText(port: number, line: string, headers: string[] = [], body = ''): string {
  const host = headers.some((header) => /^host:/i.test(header)) ? [] : [`Host: 127.0.0.1:${port}`]
  return [`${line} HTTP/1.1`, ...host, ...headers, 'Connection: close', '', body].join('\r\n')
}

function unchunk(text: string): string {
  let body = ''
  for (let at = 0; ; ) {
    const end = text.indexOf('\r\n', at)
    const size = Number.parseInt(text.slice(at, end), 16)
    if (end < 0 || !(size > 0)) return body
    body += text.slice(end + 2, end + 2 + size)
    at = end + 2 + size + 2
  }
}

function parse(text: string): Answer | undefined {
  const split = text.indexOf('\r\n\r\n')
  if (split < 0) return undefined
  const [line = '', ...rest] = text.slice(0, split).split('\r\n')
  const headers = rest.map((header): [string, string] => {
    const colon = header.indexOf(':')
    return [header.slice(0, colon).toLowerCase(), header.slice(colon + 1).trim()]
  })
  const body = text.slice(split + 4)
  const chunked = headers.some(([name, value]) => name === 'transfer-encoding' && value === 'chunked')
  return { status: Number(line.split(' ')[1]), headers, body: chunked ? unchunk(body) : body }
}

export function header(answer: Answer, name: string): string | undefined {
  return answer.headers.find(([given]) => given === name)?.[1]
}

/** Returns whether `answer` is complete, so that callers need not wait for the connection to close. */
function isWhole(answer: Answer | undefined, head: boolean): boolean {
  const length = answer && header(answer, 'content-length')
  return answer !== undefined && !head && length !== undefined && answer.body.length >= Number(length)
}

/**
 * Sends `text` and returns the answer, as latin1, once it is whole or the server closes; `null` where the server closes
 * without a word.
 */
export async function exchange(port: number, text: string): Promise<Answer | null> {
  const socket = await open(port)
  const head = text.startsWith('HEAD ')
  return new Promise((resolve, reject) => {
    let received = ''
    const finish = () => {
      socket.destroy()
      resolve(parse(received) ?? null)
    }
    socket.setEncoding('latin1')
    socket.on('data', (chunk: string) => {
      received += chunk
      if (isWhole(parse(received), head)) finish()
    })
    socket.on('close', finish)
    // A server may reset a connection whose body it has not read, after it has answered.
    socket.on('error', (error) => (received === '' ? reject(error) : finish()))
    socket.write(text, 'latin1')
  })
}
