/** Runs the lines of docs/control-server.md, as a reader pastes them. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { startControl, TOKEN } from './wire.js'

const TEXT = readFileSync(fileURLToPath(new URL('../../docs/control-server.md', import.meta.url)), 'utf8')
const blockOf = (language: string) => new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(TEXT)?.[1] ?? ''

const isInstalled = (name: string) => (process.env.PATH ?? '').split(':').some((dir) => existsSync(`${dir}/${name}`))
const missing = (name: string) => !isInstalled(name) && !process.env.CI

/** Returns the output of a program that is given the address of the control server. */
async function run(url: string, program: string, args: string[]): Promise<string> {
  const env = { ...process.env, CONTROL_URL: url, CONTROL_TOKEN: TOKEN }
  return (await promisify(execFile)(program, args, { env })).stdout
}

describe('the documented examples', () => {
  it.skipIf(missing('curl'))('of curl declare a site and publish an event', async () => {
    const { server, sites, published } = await startControl()
    await run(server.url, 'sh', ['-ec', blockOf('sh')])
    expect(await sites.get('notes')).toMatchObject({ mode: 'cooperative', event_names: ['note_changed'] })
    expect(published.map((given) => given.slice(0, 3))).toEqual([['notes', 'note_changed', { id: 7 }]])
  })

  it.skipIf(missing('python3'))('of Python publish an event', async () => {
    const { server, sites, published } = await startControl()
    await sites.put({ site_id: 'notes', owner: 'local', mode: 'observe' })
    expect(await run(server.url, 'python3', ['-c', blockOf('python')])).toContain("'published': True")
    expect(published.map((given) => given.slice(0, 3))).toEqual([['notes', 'note_changed', { id: 7 }]])
  })
})
