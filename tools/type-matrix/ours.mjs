/** Which files of a program are held to compile. */
import { dirname, join } from 'node:path'

/** Whether `file` is a program of the project of `config`, or a declaration of the package. */
export function isOurs(file, config) {
  const project = dirname(config)
  const installed = join(project, 'node_modules')
  return file.startsWith(`${installed}/relayscope/`) || (file.startsWith(`${project}/`) && !file.startsWith(installed))
}
