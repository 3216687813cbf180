/** How far `relayscope capture` and `diff` are, on a terminal; and what an interrupted capture leaves. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { startNodeServer } from '../../src/adapters/node.js'
import { capture } from '../../src/cli/incident/capture.js'
import { diff } from '../../src/cli/incident/diff.js'
import { writeWhole } from '../../src/cli/incident/files.js'
import { bytesText, createProgress } from '../../src/cli/incident/progress.js'
import { createOriginal, HEADERS } from '../incident/subject.js'
import { buildCommand, startCommand } from './process.js'

const NEVER = new Promise<never>(() => {})
const ENV = { SERVICE_ADMIN_KEY: HEADERS['x-admin-key'] }

/** A terminal of 80 columns, or a file. */
function output(isTTY: boolean) {
  let text = ''
  function write(more: string): void {
    text += more
  }
  return { isTTY, columns: 80, write, text: () => text }
}

function directory(): string {
  const dir = mkdtempSync(join(tmpdir(), 'relayscope-progress-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

async function startOriginal(): Promise<string> {
  const router = createOriginal()
  const server = await startNodeServer(router, { port: 0, closeTimeoutMs: 1 })
  onTestFinished(async () => void (await server.close()))
  return server.url + router.prefix
}

describe('createProgress', () => {
  it('replaces one line at most every 100 ms, within the columns, and removes it', () => {
    let now = 0
    const err = output(true)
    const progress = createProgress({ ...err, columns: 20 }, () => now)
    progress.show('a long text that is cut')
    progress.show('too early')
    now = 100
    progress.show('short')
    progress.clear()
    expect(err.text()).toBe(`\rrelayscope: a long \rrelayscope: short  \r${' '.repeat(17)}\r`)
  })

  it('writes nothing where no terminal reads it', () => {
    const err = output(false)
    const progress = createProgress(err)
    progress.show('text')
    progress.clear()
    expect(err.text()).toBe('')
  })

  it.each([
    [0, '0 B'],
    [999, '999 B'],
    [1_500, '1.5 kB'],
    [67_108_864, '67.1 MB'],
  ])('shows %d bytes as %s', (bytes, text) => expect(bytesText(bytes)).toBe(text))
})

describe('relayscope capture and diff', () => {
  it('say on a terminal how many routes, rows and bytes they have read', async () => {
    const url = await startOriginal()
    const file = join(directory(), 'incident.json')
    const [terminal, piped] = [output(true), output(false)]
    expect(await capture([url, '-o', file], { env: ENV, signalled: NEVER }, output(false), terminal)).toBe(0)
    expect(terminal.text()).toMatch(/\rrelayscope: \d+ routes?, \d+ rows?, [\d.]+ k?B/)
    expect(await diff([file, url], ENV, output(false), terminal)).toBe(0)
    expect(terminal.text()).toContain(`reading ${file}`.slice(0, 40))
    expect(await capture([url, '-o', '-'], { env: ENV, signalled: NEVER }, output(false), piped)).toBe(0)
    expect(piped.text()).not.toContain('\r')
  })
})

describe('an interrupted capture', () => {
  beforeAll(buildCommand)

  it('ends with exit code 1 and leaves no file', async () => {
    const dir = directory()
    let asked = () => {}
    const isAsked = new Promise<void>((resolve) => {
      asked = resolve
    })
    // It takes requests, and answers none.
    const server = createServer(() => asked()).listen(0, '127.0.0.1')
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as { port: number }
    const command = startCommand(['capture', `http://127.0.0.1:${port}/`, '-o', join(dir, 'incident.json')])
    await isAsked
    command.signal('SIGINT')
    expect(await command.ended).toMatchObject({ code: 1, err: 'relayscope: interrupted: nothing was written\n' })
    expect(readdirSync(dir)).toEqual([])
  })

  it('leaves no half of a file that was being written', async () => {
    const dir = directory()
    const controller = new AbortController()
    const written = writeWhole(join(dir, 'incident.json'), 'x'.repeat(30_000_000), controller.signal)
    controller.abort(new Error('interrupted'))
    await expect(written).rejects.toThrow('interrupted')
    expect(readdirSync(dir)).toEqual([])
  })
})
