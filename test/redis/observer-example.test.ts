import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { clients, describeRedis, startServer } from './server.js'

const EXAMPLE = fileURLToPath(new URL('../../examples/observer/main.mjs', import.meta.url))

describeRedis('examples/observer', () => {
  it('shows what a host has written, and stops on SIGTERM', async () => {
    const server = await startServer()
    onTestFinished(() => server.stop())
    const { client, close } = await clients.ioredis([server.port])
    const host = createRedisFacilities({ client, deploymentId: 'prod', onError: null })
    await host.connections.connect({ user_id: 'ada', client_id: 'c', instance_id: 'i', client_type: 'web' })
    const args = [EXAMPLE, `redis://127.0.0.1:${server.port}`, 'prod', '0']
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    const exited = once(child, 'exit')
    const [url] = await Promise.race([once(child.stdout.setEncoding('utf8'), 'data'), exited])
    expect(url).toMatch(/^http/)
    const users = await fetch(String(url).trim())
    expect(users.status).toBe(200)
    expect(await users.json()).toMatchObject({ items: [{ user_id: 'ada', observed_connections: 1 }] })
    child.kill('SIGTERM')
    expect(await exited).toEqual([0, null])
    await host.close()
    await close()
  })
})
