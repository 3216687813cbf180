/** The server side of the relay protocol, scripted over a real socket for tests of the browser client. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** One request that arrived, and the means to answer it. */
export interface Visit {
  request: IncomingMessage
  response: ServerResponse
  body: string
}

export interface HandRelay {
  url: string
  visits: Visit[]
  /** Resolves with the nth visit, from 0, once it is there. */
  visit(n: number): Promise<Visit>
  close(): Promise<void>
}

/** Starts it; `answer` may answer at once, or a test answers through `visit()`. */
export async function startHandRelay(answer: (visit: Visit, n: number) => void = () => {}): Promise<HandRelay> {
  const visits: Visit[] = []
  const waiting: (() => void)[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const visit = { request, response, body }
    visits.push(visit)
    for (const wake of waiting.splice(0)) wake()
    answer(visit, visits.length - 1)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    visits,
    async visit(n) {
      while (visits[n] === undefined) await new Promise<void>((resolve) => waiting.push(resolve))
      return visits[n]
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** One frame of an event stream. */
export function frame(event: string, data: unknown, id?: string): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}

/** The first frame of a stream, with reconnection as fast as the client allows. */
export function ready(extra: object = {}): string {
  const data = { subscription_id: 's', session_id: 'x', site_id: 'notes', queue_limit: 100, replay: false }
  return `retry: 0\n${frame('ready', { ...data, heartbeat_ms: 15_000, ...extra }, 'e:0')}`
}

/** Opens the event stream of a visit. */
export function openStream({ response }: Visit, text: string): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(text)
}

/** Answers a visit with JSON. */
export function answerJson({ response }: Visit, status: number, body: unknown, headers: object = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(body))
}
