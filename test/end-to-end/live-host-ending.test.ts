/** The live host is stopped while clients and store stall: it exits, and none of its child processes survives. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { openSocket } from '../control-server/wire.js'
import { describeRedis, startServer } from '../redis/server.js'
import { askAsPage, end, isAlive, type LiveHost, startLiveHost, until } from './live-host-process.js'

// Above every bound of an ending by far: only what hangs is longer.
const HANGS = 120_000

async function start(args: string[] = []): Promise<LiveHost> {
  const host = await startLiveHost(args)
  onTestFinished(() => void host.child.kill('SIGKILL'))
  return host
}

/** Opens connections to `url` that never finish their request, or never read. */
async function stall(url: string) {
  const { port, host } = new URL(url)
  const { ticket } = await askAsPage<{ ticket: string }>(url, '/')
  const { token } = await askAsPage<{ token: string }>(url, '/notes')
  const json = `Host: ${host}\r\nContent-Type: application/json\r\n`
  const begun = [
    `POST /relay/connect HTTP/1.1\r\n${json}Authorization: Bearer ${ticket}\r\nContent-Length: 99\r\n\r\n{`,
    `POST /cooperative/messages HTTP/1.1\r\n${json}Authorization: Bearer ${ticket}\r\nContent-Length: 99\r\n\r\n{`,
    `GET /cooperative/sessions/notes-room/events HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n\r\n`,
    `${`GET /relay-client.mjs HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(16)}`,
    `GET / HTTP/1.1\r\nHost: ${host}\r\n`,
  ]
  // They let go when the test is over, and not before.
  for (const text of begun) {
    const { socket } = await openSocket(Number(port))
    await new Promise((resolve) => socket.pause().write(text, resolve))
  }
}

describe('the live host, told to end', () => {
  it('ends while bodies do not come, readers take nothing and a client of its own is stopped', {
    timeout: HANGS,
  }, async () => {
    const host = await start()
    await stall(host.url)
    process.kill(host.pids['console-1'] as number, 'SIGSTOP')
    expect(await end(host, 'SIGTERM')).toBe(0)
    expect(Object.values(host.pids).filter(isAlive)).toEqual([])
  })
})

describeRedis('the live host on a shared store, told to end', () => {
  it('ends while the store does not answer', { timeout: HANGS }, async () => {
    const server = await startServer()
    onTestFinished(async () => {
      server.resume()
      await server.stop()
    })
    const host = await start(['--redis', `redis://127.0.0.1:${server.port}`])
    const pids = [...host.text.matchAll(/\bpid (\d+)/g)].map(([, pid]) => Number(pid))
    expect(pids.length).toBeGreaterThan(4)
    await stall(host.url)
    server.pause()
    expect(await end(host, 'SIGTERM')).toBe(0)
    // The parent does not see its orphans leave; those that have lost it do so by themselves.
    await until('the end of all', async () => (pids.some(isAlive) ? undefined : true))
  })
})
