/** A real redis-server, with its real Lua, whose clock is virtual. */
import { execFileSync, spawn } from 'node:child_process'
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { RespClient } from './resp.js'

/** Where virtual time begins, in ms since 1970. */
export const EPOCH = 1_800_000_000_000

export interface Store {
  io: RespClient
  /** Channels that this connection has subscribed to, over all histories. */
  subscribed: Set<string>
  setClock(ms: number): void
  stop(): void
}

const inPath = (command: string) => (process.env.PATH ?? '').split(':').some((dir) => existsSync(join(dir, command)))

/** What of this machine a simulated store lacks: it needs a `redis-server`, and a C compiler for its clock. */
export const missingForStore = (): string[] => ['redis-server', 'gcc'].filter((command) => !inPath(command))

async function connectWhenUp(path: string): Promise<RespClient> {
  for (let tries = 0; ; tries++) {
    try {
      return await RespClient.connect({ path })
    } catch (error) {
      if (tries === 500) throw error
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

export async function startStore(): Promise<Store> {
  const dir = mkdtempSync(join(tmpdir(), 'relayscope-store-'))
  const [socket, clock, library] = ['socket', 'clock', 'clock.so'].map((name) => join(dir, name)) as [
    string,
    string,
    string,
  ]
  execFileSync('gcc', [
    '-shared',
    '-fPIC',
    '-O2',
    '-o',
    library,
    fileURLToPath(new URL('store-clock.c', import.meta.url)),
  ])
  const file = openSync(clock, 'w+')
  const cell = Buffer.alloc(8)
  const setClock = (ms: number) => {
    cell.writeBigInt64LE(BigInt(Math.floor(ms * 1000)))
    writeSync(file, cell, 0, 8, 0)
  }
  setClock(EPOCH)
  const options = ['--port', '0', '--unixsocket', socket, '--save', '', '--appendonly', 'no', '--dir', dir, '--hz', '1']
  const child = spawn('redis-server', [...options, '--loglevel', 'warning', '--enable-debug-command', 'yes'], {
    stdio: 'ignore',
    env: { ...process.env, LD_PRELOAD: library, SIMULATED_CLOCK: clock },
  })
  const io = await connectWhenUp(socket)
  await io.call(['HELLO', '3'])
  // What has expired goes when it is touched, and at no moment that the machine decides.
  await io.call(['DEBUG', 'SET-ACTIVE-EXPIRE', '0'])
  return {
    io,
    subscribed: new Set(),
    setClock,
    stop() {
      io.close()
      child.kill()
      closeSync(file)
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
