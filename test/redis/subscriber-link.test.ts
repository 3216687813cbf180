/** A subscriber over one ioredis client renews its subscriptions after a lost connection, and may close during that. */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import type { RedisClient } from '../../src/redis/store/client.js'
import { openSubscriber } from '../../src/redis/store/subscriber.js'
import { createCutter, textFrom } from './resp.js'

/** Longer than a busy machine takes. */
const PATIENT_MS = 60_000

/** A store that replies to any command, and to subscriptions while enabled. */
async function startStub() {
  const asked: { channel: string; socket: Socket }[] = []
  const waiting = new Set<() => void>()
  const open = new Set<Socket>()
  let isSilent = false
  const server = createServer((socket) => {
    open.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => open.delete(socket))
    const answer = (command: Buffer) => {
      const [name = '', channel = ''] = textFrom(command)
      if (name.toLowerCase() !== 'ssubscribe') return socket.write('+OK\r\n')
      asked.push({ channel, socket })
      if (!isSilent) socket.write(`*3\r\n$10\r\nssubscribe\r\n$${channel.length}\r\n${channel}\r\n:1\r\n`)
      for (const look of [...waiting]) look()
    }
    socket.on('data', createCutter(answer))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  return {
    port: (server.address() as { port: number }).port,
    asked,
    silence() {
      isSilent = true
    },
    /** Resolves after `count` subscriptions were requested. */
    heard: (count: number) =>
      new Promise<void>((resolve) => {
        const look = () => {
          if (asked.length < count) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
  }
}

function openOver(port: number) {
  const client = new Redis(port, '127.0.0.1', { enableReadyCheck: false, retryStrategy: () => 10 })
  client.on('error', () => {})
  onTestFinished(() => client.disconnect())
  const links: boolean[] = []
  const subscriber = openSubscriber({
    client: client as unknown as RedisClient,
    onMessage: () => {},
    onLink: (isUp) => links.push(isUp),
  })
  onTestFinished(() => subscriber.close())
  return { subscriber, links }
}

it('renews each of its channels after a lost connection, and no other', async () => {
  const stub = await startStub()
  const { subscriber } = openOver(stub.port)
  for (const channel of ['a', 'b', 'c']) await subscriber.subscribe(channel, PATIENT_MS)
  await subscriber.unsubscribe('b', PATIENT_MS)
  stub.asked[0]?.socket.destroy()
  await stub.heard(5)
  expect(stub.asked.map(({ channel }) => channel)).toEqual(['a', 'b', 'c', 'a', 'c'])
})

it('does not renew a channel that was unsubscribed before the store replied', async () => {
  const stub = await startStub()
  const { subscriber } = openOver(stub.port)
  await subscriber.subscribe('a', PATIENT_MS)
  await Promise.all([
    subscriber.subscribe('b', PATIENT_MS),
    subscriber.unsubscribe('b', PATIENT_MS),
    subscriber.subscribe('c', PATIENT_MS),
  ])
  stub.asked[0]?.socket.destroy()
  await stub.heard(5)
  expect(stub.asked.map(({ channel }) => channel)).toEqual(['a', 'b', 'c', 'a', 'c'])
})

it('may be closed while the store has not replied to renewed subscriptions', async () => {
  const unhandled: unknown[] = []
  const keep = (error: unknown) => unhandled.push(error)
  process.on('unhandledRejection', keep)
  onTestFinished(() => void process.off('unhandledRejection', keep))
  const stub = await startStub()
  const { subscriber } = openOver(stub.port)
  await subscriber.subscribe('a', PATIENT_MS)
  stub.silence()
  const [first] = stub.asked
  first?.socket.destroy()
  await stub.heard(2)
  const ended = once(stub.asked[1]?.socket as Socket, 'close')
  await subscriber.close()
  await ended
  await new Promise(setImmediate)
  expect(unhandled).toEqual([])
})
