/** A relay scripted over a real socket, for tests of the publisher. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import type { PublisherRuntime } from '../../src/publisher/index.js'

interface Asked {
  method: string | undefined
  path: string | undefined
  headers: IncomingHttpHeaders
  body: Record<string, unknown> | undefined
}

/** Starts one that answers the nth request, from 0, with `answer`; ends it with the test. */
export async function startHandRelay(answer: (response: ServerResponse, n: number) => void) {
  const asked: Asked[] = []
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    const { method, url: path, headers } = request
    asked.push({ method, path, headers, body: text === '' ? undefined : JSON.parse(text) })
    answer(response, asked.length - 1)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  let boot = 0
  const runtime: PublisherRuntime = {
    identity: () => ({ client_id: 'notes', instance_id: `boot-${++boot}` }),
    baseUrl: `${url}/relay/`,
    authorize: (headers) => headers.set('authorization', 'Bearer host'),
  }
  return { url, asked, runtime }
}

/** Answers with JSON. */
export function json(response: ServerResponse, status: number, body: unknown, headers: object = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(body))
}
