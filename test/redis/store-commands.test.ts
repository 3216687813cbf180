/** Commands that wait for their turn at a store that does not reply. */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import { Redis } from 'ioredis'
import { afterEach, expect, it, onTestFinished, vi } from 'vitest'
import { portOf, type RedisClient } from '../../src/redis/store/client.js'
import { createCommands } from '../../src/redis/store/store.js'
import { createCutter, textFrom } from './resp.js'
import { ready } from './server.js'

afterEach(() => vi.useRealTimers())

it('does not send a command that timed out at the instant at which others made room', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const sent: string[] = []
  const command = createCommands({
    ready: () => undefined,
    lostLinks: () => 0,
    // Like node-redis with unwritten commands: a cancelled one is removed from the client's queue.
    send: ([name = ''], _key, signal) =>
      new Promise((_resolve, reject) => {
        sent.push(name)
        signal().addEventListener('abort', () => reject(signal().reason))
      }),
  })
  const outcomes = (count: number, name: string) =>
    Promise.all(Array.from({ length: count }, () => command([name], 'x', undefined, 100).catch((e) => e.outcome)))
  const [first, waiting] = [outcomes(1_000, 'GET'), outcomes(50, 'SET')]
  await vi.advanceTimersByTimeAsync(101)
  expect(new Set(await first)).toEqual(new Set(['unknown']))
  expect(new Set(await waiting)).toEqual(new Set(['not_run']))
  expect(new Set(sent)).toEqual(new Set(['GET']))
})

it('gets the reply that arrived while the process was suspended', async () => {
  // Like data in a socket, a message of another thread is processed after due timers.
  const hasReplied = new Int32Array(new SharedArrayBuffer(4))
  const text = `const { parentPort, workerData } = require('node:worker_threads')
    parentPort.once('message', () => {
      parentPort.postMessage('PONG')
      Atomics.store(workerData, 0, 1)
      Atomics.notify(workerData, 0)
    })`
  const worker = new Worker(text, { eval: true, workerData: hasReplied })
  onTestFinished(async () => void (await worker.terminate()))
  await once(worker, 'online')
  const command = createCommands({
    ready: () => undefined,
    lostLinks: () => 0,
    send: () => {
      worker.postMessage('PING')
      return new Promise((resolve) => worker.once('message', resolve))
    },
  })
  const end = performance.now() + 150
  const reply = command(['PING'], 'x', undefined, 100)
  Atomics.wait(hasReplied, 0, 0)
  while (performance.now() < end);
  expect(await reply).toBe('PONG')
})

it.each([
  ['answered', () => Promise.resolve(null)],
  ['refused', () => Promise.reject(new Error('cut'))],
])('is cancelled if its caller aborts while it is sent, and is %s without a handler', async (_, reply) => {
  const unhandled = vi.fn()
  process.on('unhandledRejection', unhandled)
  onTestFinished(() => void process.off('unhandledRejection', unhandled))
  const caller = new AbortController()
  const command = createCommands({
    ready: () => undefined,
    lostLinks: () => 0,
    send: () => {
      caller.abort('gone')
      return reply()
    },
  })
  await expect(command(['GET'], 'x', { signal: caller.signal }, 100)).rejects.toBe('gone')
  await new Promise(setImmediate)
  expect(unhandled).not.toHaveBeenCalled()
})

it.each([
  ['its link was lost with it before, so that it was sent twice', true, 'unknown'],
  ['it was sent once', false, 'not_run'],
])('is refused by a store, and %s', async (_, isLost, outcome) => {
  const open = new Set<Socket>()
  let arrivals = 0
  const server = createServer((socket) => {
    open.add(socket)
    socket.on('error', () => {})
    const answer = (message: Buffer) => {
      if (textFrom(message)[0] !== 'DO') return socket.write('+OK\r\n')
      // It may have run: there was no reply.
      if (++arrivals === 1 && isLost) return socket.destroy()
      return socket.write('-CLUSTERDOWN The cluster is down\r\n')
    }
    socket.on('data', createCutter(answer))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const client = new Redis(port, '127.0.0.1', { enableReadyCheck: false, retryStrategy: () => 10 })
  onTestFinished(() => {
    client.disconnect()
    for (const socket of open) socket.destroy()
    server.close()
  })
  await ready(client)
  const command = createCommands(portOf(client as unknown as RedisClient))
  await expect(command(['DO'], 'x', undefined, 60_000)).rejects.toMatchObject({ code: 'unavailable', outcome })
  expect(arrivals).toBe(isLost ? 2 : 1)
})
