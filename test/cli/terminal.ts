/** A real terminal for tests: a multiplexer of its own that a program runs in, its keys and its screen. */
import { execFile, execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect } from 'vitest'

const run = promisify(execFile)

const isThere = (() => {
  try {
    execFileSync('tmux', ['-V'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})()

/** Skips by name where there is no terminal multiplexer. */
export const describeTerminal = (name: string, tests: () => void) =>
  describe.skipIf(!isThere)(`${name} (needs tmux)`, tests)

export interface TestTerminal {
  /** What it shows now, without the blanks at the ends of its lines. */
  screen(): Promise<string[]>
  /** Whether the program has the screen that goes away with it. */
  isAlternate(): Promise<boolean>
  press(...keys: string[]): Promise<void>
  resize(columns: number, rows: number): Promise<void>
  /** Waits until the screen has this. */
  shows(text: string | RegExp): Promise<void>
  close(): Promise<void>
}

/** Runs `command` in a terminal of its own, behind it a shell that stays. */
export async function openTerminal(
  command: readonly string[],
  env: Record<string, string>,
  [columns, rows] = [80, 24],
): Promise<TestTerminal> {
  const socket = join(tmpdir(), `relayscope-${process.pid}-${Math.random().toString(36).slice(2)}`)
  const tmux = (...args: string[]) => run('tmux', ['-S', socket, '-f', '/dev/null', ...args])
  const given = Object.entries(env).flatMap(([name, value]) => ['-e', `${name}=${value}`])
  const quoted = command.map((part) => `'${part.replaceAll("'", "'\\''")}'`).join(' ')
  await tmux('new-session', '-d', '-x', `${columns}`, '-y', `${rows}`, ...given, `${quoted}; echo "ended with $?"; cat`)
  const screen = async () => (await tmux('capture-pane', '-p')).stdout.split('\n').map((line) => line.trimEnd())
  return {
    screen,
    isAlternate: async () => (await tmux('display-message', '-p', '#{alternate_on}')).stdout.trim() === '1',
    press: async (...keys) => {
      for (const key of keys) await tmux('send-keys', key)
    },
    resize: async (width, height) => {
      await tmux('resize-window', '-x', `${width}`, '-y', `${height}`)
    },
    shows: (text) => expect.poll(async () => (await screen()).join('\n')).toMatch(text),
    async close() {
      await tmux('kill-server').catch(() => {})
      rmSync(socket, { force: true })
    },
  }
}
