/** Runs a server as a process of its own and learns its port from what it prints. Serves the battery and the examples. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export interface Running {
  port: number
  close(): Promise<void>
  /** Asks it to end, as an operator does, and waits until it has. @returns its exit code. */
  end(): Promise<number | null>
}

export interface RunOptions {
  cwd?: string
  env?: Record<string, string>
}

const PORT = /"port":\s*(\d+)|127\.0\.0\.1:(\d+)/

/** The port that the process tells, or a rejection with what it said instead. */
async function readPort(child: ChildProcess): Promise<number> {
  const said: string[] = []
  child.stderr?.on('data', (chunk: Buffer) => said.push(chunk.toString()))
  const died = once(child, 'close').then(() => Promise.reject(new Error(`the server ended: ${said.join('')}`)))
  died.catch(() => {})
  const told = (async () => {
    if (!child.stdout) throw new Error('the server has no output')
    for await (const line of createInterface(child.stdout)) {
      said.push(line)
      const [, json, url] = PORT.exec(line) ?? []
      if (json ?? url) return Number(json ?? url)
    }
    return died
  })()
  return Promise.race([told, died])
}

/** Runs `command` until `close()`. A line that it prints names the port, as `{"port":1234}` or in a loopback URL. */
export async function run(command: string, args: string[], { cwd, env }: RunOptions = {}): Promise<Running> {
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NO_COLOR: '1', ...env },
    ...(cwd === undefined ? {} : { cwd }),
  })
  // Rejects for a command that is not there.
  const ended = once(child, 'exit')
  ended.catch(() => {})
  const close = async () => {
    if (child.pid === undefined) return
    child.kill('SIGKILL')
    await ended
  }
  try {
    const port = await readPort(child)
    child.stdout?.resume()
    const end = async () => {
      child.kill('SIGTERM')
      await ended
      return child.exitCode
    }
    return { port, close, end }
  } catch (error) {
    await close()
    throw error
  }
}
