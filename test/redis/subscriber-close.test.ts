/** A subscriber over node-redis that is closed leaves nothing open, whatever its client was about. */
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

/** A store that says yes to whatever it is asked, and who has connected to it. */
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

it('leaves no connection that is just being made', async () => {
  const { port, sockets } = await startStub()
  await openOver(port, () => {}).close()
  await isOver(sockets, 0)
})

it('leaves no connection that is just being made anew', async () => {
  const { port, sockets } = await startStub()
  const subscriber = openOver(port, (isUp) => void (isUp || subscriber.close()))
  await soon(() => expect(subscriber.isUp).toBe(true))
  sockets[0]?.destroy()
  await isOver(sockets, 1)
})

it('leaves no nodes that are just being looked for', async () => {
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

it('is closed where its client has ended by itself and says so', async () => {
  const fake = new FakeClient()
  fake.isEnded = true
  const subscriber = openSubscriber({ client: fake.client, onMessage: () => {}, onLink: () => {} })
  await expect(subscriber.close()).resolves.toBeUndefined()
})
