/** Speaks to a control server byte by byte, and stands in for the relay behind it. */
import { connect, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import {
  type CooperativeSiteControlServerOptions,
  controlServerOpenApi,
  startCooperativeSiteControlServer,
} from '../../src/control-server/index.js'
import { createSiteRegistry } from '../../src/memory/cooperative/sites.js'
import type { CooperativeSitePublisher } from '../../src/publisher/index.js'
import { expectDescribed } from '../openapi.js'

const DOCUMENT = controlServerOpenApi()

export const TOKEN = 'correct-horse-battery'

type Published = Parameters<CooperativeSitePublisher['publish']>

/** Starts a control server over a local registry and a publisher that records its calls. */
export async function startControl(options: Partial<CooperativeSiteControlServerOptions> = {}) {
  const published: Published[] = []
  const publisher: CooperativeSitePublisher = {
    async publish(...given) {
      published.push(given)
      const [siteId, , , { messageId = 'generated' } = {}] = given
      return {
        accepted: true,
        duplicate: false,
        message_id: messageId,
        stream: `users/local/sites/${siteId}/events`,
        published: true,
        not_published_reason: null,
      }
    },
  }
  const sites = createSiteRegistry()
  const server = await startCooperativeSiteControlServer({ token: TOKEN, sites, publisher, onError: null, ...options })
  onTestFinished(async () => void (await server.close()))

  /** One request with the token, as `curl` would send it. */
  async function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    const sent = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }
    const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
    const response = await fetch(server.url + path, {
      method,
      headers: { authorization: `Bearer ${TOKEN}`, ...type, ...headers },
      ...sent,
    })
    const text = await response.text()
    const answer = { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) }
    const given = { type: response.headers.get('content-type'), ...answer }
    expectDescribed(DOCUMENT, { method, path: path.split('?')[0] as string, ...given })
    return answer
  }
  return { server, sites, published, ask }
}

/** A socket to `port`, destroyed with the test, and everything that came back once it was closed. */
export async function openSocket(port: number): Promise<{ socket: Socket; closed: Promise<string> }> {
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
  })
  socket.on('error', () => {})
  const closed = new Promise<string>((resolve) => socket.on('close', () => resolve(text)))
  await new Promise((resolve) => socket.on('connect', resolve))
  return { socket, closed }
}

/** Sends `lines` and a blank one with `Connection: close`, and returns the whole response. */
export async function sendRaw(port: number, lines: string[]): Promise<{ status: number; text: string }> {
  const { socket, closed } = await openSocket(port)
  socket.write(`${[...lines, 'Connection: close'].join('\r\n')}\r\n\r\n`)
  const text = await closed
  return { status: Number(text.slice(9, 12)), text }
}
