/** Debian's Prometheus and its `promtool`, as programs of their own: where they are, and one that scrapes a target. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'vitest'
import { until } from '../end-to-end/live-host-process.js'
import { freePort } from '../redis/server.js'

const isThere = (program: string) => spawnSync(program, ['--version']).error === undefined
const missing = ['prometheus', 'promtool'].filter((program) => !isThere(program))

/** `describe` where there is a Prometheus; elsewhere a named skip, and a failure in CI. */
export function describePrometheus(name: string, body: () => void): void {
  if (missing.length === 0) return void describe(name, body)
  if (process.env.CI)
    it('has a prometheus to run against', () => Promise.reject(new Error(`no ${missing.join(' and ')} on the path`)))
  describe.skip(`${name} (needs prometheus)`, body)
}

/** What `promtool check metrics` says to `text`: nothing, where it finds nothing. */
export function lint(text: string): { status: number | null; said: string } {
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' })
  return { status, said: stdout + stderr }
}

/** One series of an instant query. */
export interface Series {
  metric: Record<string, string>
  value: [at: number, value: string]
}

/** Starts a Prometheus on loopback that scrapes `target` every second with `key` as its bearer token. */
export async function startPrometheus(target: string, key: string) {
  const dir = await mkdtemp(join(tmpdir(), 'relayscope-prometheus-'))
  const config = join(dir, 'prometheus.yml')
  await writeFile(join(dir, 'key'), key)
  // As docs/metrics.md has it, but for the time between two scrapes.
  await writeFile(
    config,
    [
      'global: { scrape_interval: 1s, scrape_timeout: 1s }',
      'scrape_configs:',
      '  - job_name: relayscope',
      '    authorization:',
      '      type: Bearer',
      `      credentials_file: ${join(dir, 'key')}`,
      '    static_configs:',
      `      - targets: ['${new URL(target).host}']`,
    ].join('\n'),
  )
  const port = await freePort()
  const child = spawn(
    'prometheus',
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(dir, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=warn',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const ended = once(child, 'exit')

  async function api<T>(path: string): Promise<T | undefined> {
    if (child.exitCode !== null) throw new Error(`prometheus ended: ${said}`)
    const response = await fetch(`http://127.0.0.1:${port}/api/v1${path}`).catch(() => undefined)
    if (!response?.ok) return undefined
    return ((await response.json()) as { data: T }).data
  }

  async function query(expression: string): Promise<Series[]> {
    const data = await api<{ result: Series[] }>(`/query?query=${encodeURIComponent(expression)}`)
    return data?.result ?? []
  }

  return {
    api,
    query,
    /** The series of `expression`, as soon as there are any. */
    queried: (expression: string) =>
      until(expression, async () => {
        const result = await query(expression)
        return result.length > 0 ? result : undefined
      }),
    said: () => said,
    async stop() {
      child.kill('SIGTERM')
      const late = setTimeout(() => child.kill('SIGKILL'), 5_000)
      await ended
      clearTimeout(late)
      await rm(dir, { recursive: true, force: true })
    },
  }
}
