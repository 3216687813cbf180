/** What the Node adapter makes of a handler with `reply`: texts, chunks, nothing, and the request that it sees. */
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import type { FetchHandler } from '../../src/adapters/handler.js'
import { toNodeHandler } from '../../src/adapters/node.js'
import { serve } from './server.js'
import { exchange, open, requestText } from './wire.js'

const reply = (body: string) => ({ status: 200, headers: { 'content-type': 'text/plain' }, body })
const neverCalled: FetchHandler = () => {
  throw new Error('not to be called')
}

describe('a handler with reply', () => {
  const replying = (answer: NonNullable<FetchHandler['reply']>) =>
    serve(toNodeHandler(Object.assign(neverCalled.bind(null), { reply: answer }), { onError: null }))

  it('may return a Response', async () => {
    const port = await replying((request) => {
      const chunks = ['carried ', new URL(request.url).pathname].map((text) => new TextEncoder().encode(text))
      const stream = new ReadableStream<Uint8Array>({
        pull(controller) {
          const chunk = chunks.shift()
          if (chunk) controller.enqueue(chunk)
          else controller.close()
        },
      })
      return new Response(stream, { status: 201, headers: { 'x-from': 'a Response' } })
    })
    const answer = await fetch(`http://127.0.0.1:${port}/x`)
    expect([answer.status, answer.headers.get('x-from')]).toEqual([201, 'a Response'])
    expect(await answer.text()).toBe('carried /x')
  })

  it('has its reply sent, with the length of the text in bytes', async () => {
    const port = await replying(() => reply('grün'))
    const answer = await exchange(port, requestText(port, 'GET /'))
    expect(answer?.headers).toContainEqual(['content-length', '5'])
    expect(Buffer.from(answer?.body ?? '', 'latin1').toString()).toBe('grün')
    const head = await exchange(port, requestText(port, 'HEAD /'))
    expect(head).toMatchObject({ status: 200, body: '' })
    expect(head?.headers).toContainEqual(['content-length', '5'])
  })

  it.each([
    ['throws', () => neverCalled({} as Request, { remoteAddress: undefined }) as never],
    ['rejects', () => Promise.reject(new Error('planted-secret'))],
  ])('is 500 with a fixed body when it %s', async (_, answer) => {
    const port = await replying(answer)
    expect(await exchange(port, requestText(port, 'GET /'))).toMatchObject({
      status: 500,
      body: 'Internal Server Error\n',
    })
  })

  it('may return an empty reply', async () => {
    const port = await replying(() => ({ status: 204, headers: { 'x-from': 'a reply' }, body: null }))
    const answer = await exchange(port, requestText(port, 'DELETE /'))
    expect(answer).toMatchObject({ status: 204, body: '' })
    expect(answer?.headers.some(([name]) => name === 'content-length')).toBe(false)
    expect(answer?.headers).toContainEqual(['x-from', 'a reply'])
  })

  describe('that streams', () => {
    const bytes = (text: string) => new TextEncoder().encode(text)
    const going = (body: AsyncIterator<Uint8Array>) => () => ({ status: 200, headers: {}, body })

    it('is cancelled unread when the client disconnects before the response', async () => {
      let ask = () => {}
      let giveBack = () => {}
      const asked = new Promise<void>((resolve) => (ask = resolve))
      const givenBack = new Promise<void>((resolve) => (giveBack = resolve))
      let taken = 0
      const port = await replying(async ({ signal }) => {
        ask()
        await once(signal, 'abort')
        const body: AsyncIterator<Uint8Array> = {
          async next() {
            taken++
            return { done: true, value: undefined }
          },
          async return() {
            giveBack()
            return { done: true, value: undefined }
          },
        }
        return { status: 200, headers: {}, body }
      })
      const socket = await open(port)
      socket.write(requestText(port, 'GET /'))
      await asked
      socket.destroy()
      await givenBack
      expect(taken).toBe(0)
    })

    it('is written chunk by chunk, each requested after the previous one was read', async () => {
      const texts = ['one ', 'two ', 'three']
      let waiting = 0
      const port = await replying(
        going({
          async next() {
            if (waiting++ > 0) throw new Error('asked for two at once')
            await new Promise(setImmediate)
            waiting--
            const text = texts.shift()
            return text ? { done: false, value: bytes(text) } : { done: true, value: undefined }
          },
        }),
      )
      expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('one two three')
    })

    it('sends the head before the first chunk', async () => {
      const port = await replying(going({ next: () => new Promise(() => {}) }))
      const leaving = new AbortController()
      expect((await fetch(`http://127.0.0.1:${port}/`, { signal: leaving.signal })).status).toBe(200)
      leaving.abort()
    })

    it('is cancelled when a client disconnects during a pending chunk', async () => {
      const told = new EventTarget()
      const returned = once(told, 'returned')
      const port = await replying(
        going({
          next: () => new Promise(() => {}),
          return() {
            told.dispatchEvent(new Event('returned'))
            throw new Error('and that changes nothing')
          },
        }),
      )
      const leaving = new AbortController()
      await fetch(`http://127.0.0.1:${port}/`, { signal: leaving.signal })
      leaving.abort()
      expect(await returned).toHaveLength(1)
      expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(200)
    })

    it('is cancelled without a read for HEAD', async () => {
      const asked: string[] = []
      const port = await replying(
        going({
          async next() {
            asked.push('next')
            return { done: true, value: undefined }
          },
          async return() {
            asked.push('return')
            return { done: true, value: undefined }
          },
        }),
      )
      expect(await exchange(port, requestText(port, 'HEAD /'))).toMatchObject({ status: 200, body: '' })
      expect(asked).toEqual(['return'])
    })

    it('is aborted when it fails, without details', async () => {
      const port = await replying(going({ next: () => Promise.reject(new Error('planted-secret')) }))
      const told = await fetch(`http://127.0.0.1:${port}/`).then((answer) => answer.text().catch(String))
      expect(told).toMatch(/^TypeError/)
      expect(told).not.toContain('planted-secret')
    })
  })

  it('receives a complete Request with its members, body and clone', async () => {
    const port = await replying(async (request) => {
      const clone = request.clone()
      const again = new Request(clone)
      return reply(
        JSON.stringify([
          request instanceof Request,
          request.method,
          new URL(request.url).pathname,
          request.headers.get('x-admin-key'),
          new Set([request.headers, request.headers]).size,
          new Set([request.signal, request.signal]).size,
          await request.text(),
          request.bodyUsed,
          again.method,
          await again.text(),
        ]),
      )
    })
    const headers = ['X-Admin-Key: k', 'Content-Length: 4']
    const answer = await exchange(port, requestText(port, 'POST /path', headers, 'body'))
    expect(JSON.parse(answer?.body ?? '')).toEqual([true, 'POST', '/path', 'k', 1, 1, 'body', true, 'POST', 'body'])
  })

  it('sees an aborted signal when it reads it after the client has disconnected', async () => {
    let tell: (aborted: boolean) => void = () => {}
    const told = new Promise<boolean>((resolve) => {
      tell = resolve
    })
    let left: Promise<void> | undefined
    const handle = toNodeHandler(
      Object.assign(neverCalled.bind(null), {
        reply: async (request: Request) => {
          await left
          tell(request.signal.aborted)
          return reply('too late')
        },
      }),
    )
    const port = await serve((req, res) => {
      left = new Promise((resolve) => res.on('close', resolve))
      handle(req, res)
    })
    const socket = await open(port)
    socket.write(requestText(port, 'GET /'), () => setImmediate(() => socket.destroy()))
    expect(await told).toBe(true)
  })

  it('is notified when a client disconnects', async () => {
    const reasons: boolean[] = []
    let seen = () => {}
    const twice = new Promise<void>((resolve) => {
      seen = () => reasons.length === 2 && resolve()
    })
    const port = await replying(async (request) => {
      await new Promise<void>((resolve) => request.signal.addEventListener('abort', () => resolve()))
      reasons.push(request.signal.aborted, request.clone().signal.aborted)
      seen()
      return reply('')
    })
    const socket = await open(port)
    socket.write(requestText(port, 'GET /'), () => setImmediate(() => socket.destroy()))
    await twice
    expect(reasons).toEqual([true, true])
  })
})
