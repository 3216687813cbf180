/** A key and its own certificate, made for a run by openssl. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** On CI a test that cannot run fails. */
export const isOpensslMissing = spawnSync('openssl', ['version']).status !== 0 && !process.env.CI

/** Makes them in a new folder, which the caller removes. */
export function selfSigned(): { folder: string; key: string; cert: string } {
  const folder = mkdtempSync(join(tmpdir(), 'relayscope-tls-'))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const kind = [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-days',
    '2',
    '-subj',
    '/CN=localhost',
  ]
  execFileSync('openssl', ['req', '-x509', ...kind, '-keyout', key, '-out', cert], { stdio: 'ignore' })
  return { folder, key, cert }
}
