/** The manifest of the page, against the program of the page. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { expect, it, onTestFinished } from 'vitest'
import { ROOT } from '../repository/imports.js'

const page = readFileSync('docs/kubernetes.md', 'utf8')

it('answers the probes of the manifest without a key, and drains before it ends', async () => {
  const paths = [...page.matchAll(/httpGet: \{ path: (\S+), port: http \}/g)].map(([, path]) => path as string)
  expect(paths).toEqual(['/livez', '/readyz'])
  const env = { ...process.env, SERVICE_ADMIN_KEY: 'kubernetes-key', DRAIN_MS: '300000' }
  const child = spawn(process.execPath, ['examples/probes.mjs'], {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string]
  const url = line.replace('listening at ', '').trim()
  const statusOf = async (path: string) => (await fetch(url + path)).status
  await expect.poll(() => Promise.all(paths.map(statusOf))).toEqual([200, 200])
  expect(await statusOf('/capabilities')).toBe(403)
  child.kill('SIGTERM')
  await expect.poll(() => Promise.all(paths.map(statusOf))).toEqual([200, 503])
  expect(await statusOf('/capabilities')).toBe(403)
})

it('gives a drain the time that the manifest has', () => {
  const number = (name: string) =>
    [...page.matchAll(new RegExp(`${name}: (\\d+)`, 'g'))].map(([, found]) => Number(found))
  const [, period = 0] = number('periodSeconds')
  const [, threshold = 0] = number('failureThreshold')
  const [timeout = 0] = number('timeoutSeconds')
  const drainS = Number(/DRAIN_MS \?\? ([\d_]+)/.exec(page)?.[1]?.replaceAll('_', '')) / 1_000
  expect(drainS).toBeGreaterThan(period * threshold + timeout)
  // And closes, which takes at most 5 s for each of server and facilities.
  expect(number('terminationGracePeriodSeconds')[0]).toBeGreaterThan(drainS + 10)
})
