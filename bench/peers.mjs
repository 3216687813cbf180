/** What only the benchmarks need: peers, installed on first use from their own lock file, and a browser. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

/** The Chromium that benchmarks drive: the one without a window where there is one, as in the tests. */
const HEADLESS = '/usr/bin/chromium-headless-shell'
export const CHROMIUM = process.env.CHROMIUM ?? (existsSync(HEADLESS) ? HEADLESS : '/usr/bin/chromium')

const HOME = new URL('peers/package.json', import.meta.url)

/** @returns `require` for the packages in `bench/peers`. @throws Error if they cannot be installed */
export function requirePeers() {
  // The last thing that npm writes.
  if (!existsSync(new URL('node_modules/.package-lock.json', HOME))) {
    const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund']
    const { status, stderr } = spawnSync('npm', args, { cwd: fileURLToPath(new URL('.', HOME)), encoding: 'utf8' })
    if (status !== 0) throw new Error(`the peers cannot be installed: ${stderr}`)
  }
  return createRequire(HOME)
}
