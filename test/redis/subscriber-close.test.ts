/** A subscriber over node-redis that is closed leaves nothing open, whatever its client was doing. */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createClient } from 'redis'
import { expect, it, onTestFinished } from 'vitest'
import type { RedisClient } from '../../src/redis/store/client.js'
import { openSubscriber } from '../../src/redis/store/subscriber.js'
import { FakeClient } from './fake-subscriber.js'
import { createCutter } from './resp.js'
import { ALIKE } from './server.js'
import { soon } from './wait-for.js'

/** A store that replies OK to any command, and its connections. */
async function startStub() {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    socket.on(
      'data',
      createCutter(() => socket.write('+OK\r\n')),
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { port: (server.address() as { port: number }).port, sockets }
}

function openOver(port: number, onLink: (isUp: boolean) => void) {
  const url = `redis://127.0.0.1:${port}`
  const client = createClient({ ...ALIKE, url, socket: { reconnectStrategy: 10 } }) as RedisClient
  const subscriber = openSubscriber({ client, onMessage: () => {}, onLink })
  onTestFinished(() => subscriber.close())
  return subscriber
}

const isOver = (sockets: Socket[], nth: number) => soon(() => expect(sockets[nth]?.destroyed).toBe(true))

it('leaves no connection that is being opened', async () => {
  const { port, sockets } = await startStub()
  await openOver(port, () => {}).close()
  await isOver(sockets, 0)
})

it('leaves no connection that is being reopened', async () => {
  const { port, sockets } = await startStub()
  const subscriber = openOver(port, (isUp) => void (isUp || subscriber.close()))
  await soon(() => expect(subscriber.isUp).toBe(true))
  sockets[0]?.destroy()
  await isOver(sockets, 1)
})

it('leaves no connections to nodes that are being discovered', async () => {
  const fake = new FakeClient()
  let connect: (value?: unknown) => void = () => {}
  fake.connecting = new Promise((resolve) => {
    connect = resolve
  })
  const subscriber = openSubscriber({ client: fake.client, onMessage: () => {}, onLink: () => {} })
  await subscriber.close()
  fake.destroyed = 0
  connect()
  await soon(() => expect(fake.destroyed).toBe(1))
})

it('is closed if its client has ended on its own and throws', async () => {
  const fake = new FakeClient()
  fake.isEnded = true
  const subscriber = openSubscriber({ client: fake.client, onMessage: () => {}, onLink: () => {} })
  await expect(subscriber.close()).resolves.toBeUndefined()
})
