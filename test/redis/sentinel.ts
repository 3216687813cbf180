/** A Sentinel in a process of its own, which watches one master. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RespClient } from '../simulation/resp.js'
import { freePort } from './server.js'

export interface Sentinel {
  port: number
  stop(): Promise<void>
}

/** Starts a Sentinel that knows the server at `master` as `name`. */
export async function startSentinel(name: string, master: number): Promise<Sentinel> {
  const [port, dir] = [await freePort(), await mkdtemp(join(tmpdir(), 'relayscope-sentinel-'))]
  const file = join(dir, 'sentinel.conf')
  const lines = [`port ${port}`, 'bind 127.0.0.1', `dir ${dir}`, `sentinel monitor ${name} 127.0.0.1 ${master} 1`]
  await writeFile(file, `${lines.join('\n')}\n`)
  const child = spawn(process.env.REDIS_SERVER ?? 'redis-server', [file, '--sentinel'], { stdio: 'ignore' })
  const ended = once(child, 'exit')
  const stop = async () => {
    child.kill('SIGKILL')
    await ended
    await rm(dir, { recursive: true })
  }
  for (;;) {
    const client = await RespClient.connect({ port, host: '127.0.0.1' }).catch(() => undefined)
    if (client) {
      client.close()
      return { port, stop }
    }
    if (child.exitCode !== null) throw new Error(`the Sentinel ended with ${child.exitCode}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
