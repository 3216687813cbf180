import { once } from 'node:events'
import { createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { EventSource } from 'eventsource'
import { createParser } from 'eventsource-parser'
import { describe, expect, it, onTestFinished } from 'vitest'
import { toNodeHandler } from '../../src/adapters/node.js'
import { event } from '../contract/event-bus.js'
import { changed, createWorld, TOPIC, type World } from './world.js'

/** The relay on a real port. */
async function listen({ relay }: World): Promise<number> {
  const server = createServer(toNodeHandler(relay))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  return (server.address() as AddressInfo).port
}

/** Resolves when `condition` holds; the event loop turns meanwhile. */
async function until(condition: () => boolean): Promise<void> {
  const end = Date.now() + 5_000
  while (!condition()) {
    if (Date.now() > end) throw new Error('it never came about')
    await new Promise((resolve) => setImmediate(resolve))
  }
}

describe('the relay on node:http', () => {
  it("sends a host's messages to an ordinary EventSource client", async () => {
    const world = await createWorld()
    const base = `http://127.0.0.1:${await listen(world)}/relay`
    const source = new EventSource(`${base}/sessions/${world.session_id}/events`, {
      fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, authorization: 'Bearer bob' } }),
    })
    onTestFinished(() => source.close())
    const next = (name: string) =>
      new Promise<MessageEvent>((resolve) => source.addEventListener(name, resolve, { once: true }))
    const ready = JSON.parse((await next('ready')).data)
    expect(ready).toMatchObject({ session_id: world.session_id, queue_limit: 100 })
    const received = next('site_event')
    const response = await fetch(`${base}/messages`, {
      method: 'POST',
      headers: { authorization: 'Bearer alice', 'content-type': 'application/json' },
      body: JSON.stringify(changed({ text: 'line\r\nbreak \u2028 and \ud800' })),
    })
    expect(response.status).toBe(202)
    const message = await received
    expect(message.lastEventId).toMatch(/:1$/)
    expect(JSON.parse(message.data)).toMatchObject({ name: 'note_changed', seq: 1 })
    source.close()
    await until(() => world.relay.streams === 0)
  })

  it('holds a hundred events for a stalled socket, and reports all others as dropped', async () => {
    const world = await createWorld()
    const port = await listen(world)
    const request = get({
      port,
      path: `/relay/sessions/${world.session_id}/events`,
      headers: { authorization: 'Bearer bob' },
    })
    onTestFinished(() => void request.destroy())
    const [response]: IncomingMessage[] = await once(request, 'response')
    if (response === undefined) throw new Error('no response')
    await until(() => world.relay.streams === 1)
    const before = process.memoryUsage().rss
    const data = 'x'.repeat(60_000)
    const published = 2_000
    for (let n = 1; n <= published; n++) {
      world.bus.publish(TOPIC, { ...event(n), data })
      await new Promise((resolve) => setImmediate(resolve))
    }
    // 120 MB were published; what the kernel took and a hundred events are far less.
    expect(process.memoryUsage().rss - before).toBeLessThan(80_000_000)
    const seen: number[] = []
    let dropped = 0
    const parser = createParser({
      onEvent({ event: name, data: text }) {
        const said = JSON.parse(text)
        if (name === 'site_event') seen.push(said.seq)
        if (name === 'gap') dropped += said.dropped
      },
    })
    response.setEncoding('utf8').on('data', (text: string) => parser.feed(text))
    await until(() => seen.at(-1) === published)
    expect(seen.slice(-100)).toEqual(Array.from({ length: 100 }, (_, i) => published - 99 + i))
    expect(seen.length + dropped).toBe(published)
  })

  it('releases every subscription of clients that connect and disconnect', async () => {
    const world = await createWorld()
    const url = `http://127.0.0.1:${await listen(world)}/relay/sessions/${world.session_id}/events`
    for (let n = 0; n < 100; n++) {
      const controller = new AbortController()
      const opened = fetch(url, { headers: { authorization: 'Bearer bob' }, signal: controller.signal })
      if (n % 2) await opened
      controller.abort()
      await opened.catch(() => {})
    }
    await until(() => world.relay.streams === 0)
    expect(await world.bus.publish(TOPIC, event(1))).toBe(0)
  })

  it('cancels the call of a viewer that disconnects', async () => {
    let hangUp = () => {}
    let cancelled = false
    const world = await createWorld({
      connector: {
        call: (_client, { signal }) => {
          signal.addEventListener('abort', () => {
            cancelled = true
          })
          hangUp()
          return new Promise(() => {})
        },
      },
    })
    const controller = new AbortController()
    hangUp = () => controller.abort()
    const url = `http://127.0.0.1:${await listen(world)}/relay/sessions/${world.session_id}/actions/archive_note`
    const asked = fetch(url, {
      method: 'POST',
      headers: { authorization: 'Bearer bob', 'content-type': 'application/json' },
      body: '{}',
      signal: controller.signal,
    })
    await expect(asked).rejects.toMatchObject({ name: 'AbortError' })
    await until(() => cancelled)
  })
})
