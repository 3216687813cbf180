/** Reads from the sources which members a declaration has: for the tests that hold documents against types. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import ts from 'typescript'
import { ROOT, readFiles, treeOf } from './imports.js'

/** What is set to a schema of options, by its name. */
const SCHEMAS = new Map<string, ts.ObjectLiteralExpression>()

/** Interfaces of `src` by name; of two with one name that of the contract, which documents mean. */
function interfaces(): Map<string, ts.InterfaceDeclaration> {
  const found = new Map<string, ts.InterfaceDeclaration>()
  const inContract = ({ path }: { path: string }) => Number(/(?:^|\/)contract\//.test(path))
  for (const { path, text } of readFiles('src').sort((a, b) => inContract(a) - inContract(b)))
    for (const node of treeOf(path, text).statements) {
      if (ts.isInterfaceDeclaration(node)) found.set(node.name.text, node)
      if (!ts.isVariableStatement(node)) continue
      for (const { name, initializer } of node.declarationList.declarations) {
        const shape = initializer && ts.isCallExpression(initializer) && initializer.arguments[0]
        if (shape && ts.isObjectLiteralExpression(shape)) SCHEMAS.set(name.getText(), shape)
      }
    }
  return found
}

const DECLARED = interfaces()

function declared(name: string): ts.InterfaceDeclaration {
  const found = DECLARED.get(name)
  if (!found) throw new Error(`no interface ${name}`)
  return found
}

const SCHEMA_TYPE = /^(?:Omit<)?(?:Input|Read)<typeof (\w+)>/

/** What an interface extends: others, and the inputs of schemas. */
function parentsOf(name: string): { interfaces: string[]; schemas: string[] } {
  const types = (DECLARED.get(name)?.heritageClauses ?? []).flatMap(({ types }) => types.map((type) => type.getText()))
  const schemas = types.flatMap((type) => SCHEMA_TYPE.exec(type)?.[1] ?? [])
  return { interfaces: types.filter((type) => !SCHEMA_TYPE.test(type)), schemas }
}

/** The interface that is the input of each schema. */
export const OWNERS = new Map(
  [...DECLARED.keys()].flatMap((name) => parentsOf(name).schemas.map((schema) => [schema, name])),
)

/** The properties of a schema; `...Other.shape` stands for those of `Other`. */
const schemaProperties = (schema: string): ts.PropertyAssignment[] =>
  (SCHEMAS.get(schema)?.properties ?? []).flatMap((property) => {
    if (ts.isPropertyAssignment(property)) return [property]
    const other = ts.isSpreadAssignment(property) && /^(\w+)\.shape$/.exec(property.expression.getText())?.[1]
    return other ? schemaProperties(other) : []
  })

const propertiesOf = (name: string) => parentsOf(name).schemas.flatMap(schemaProperties)

function namesIn(members: ts.NodeArray<ts.TypeElement>, before: string): string[] {
  return members.flatMap((member) => {
    const name = member.name && `${before}${member.name.getText()}`
    if (!name) return []
    const nested = ts.isPropertySignature(member) && member.type
    return nested && ts.isTypeLiteralNode(nested) ? [name, ...namesIn(nested.members, `${name}.`)] : [name]
  })
}

/** The members of an interface and of those that it extends, those of a literal type within it as `outer.inner`. */
export function membersOf(name: string): string[] {
  const own = [...propertiesOf(name).map((property) => property.name.getText()), ...namesIn(declared(name).members, '')]
  return [...parentsOf(name).interfaces.flatMap(membersOf), ...own]
}

/** The interfaces that one extends, at any depth, and itself. */
export function lineageOf(name: string): string[] {
  return [name, ...parentsOf(name).interfaces.flatMap(lineageOf)]
}

/** The members of an interface that are options of their own, with the name of these. */
export const typesIn = (name: string): [member: string, type: string][] =>
  propertiesOf(name).flatMap((property): [string, string][] => {
    const type = /^optionsOf<(\w+)>/.exec(property.initializer.getText())?.[1]
    return type ? [[property.name.getText(), type]] : []
  })

/** The methods of an interface. */
export const methodsOf = (name: string): string[] =>
  declared(name)
    .members.filter(ts.isMethodSignature)
    .map((member) => member.name.getText())

/** The words of a type that is a union of them. */
export function textFrom(name: string): string[] {
  for (const { text } of readFiles('src')) {
    const declaration = new RegExp(`^export type ${name} =((?:\\s*(?://.*)?\\s*\\| '\\w+')+)`, 'm').exec(text)
    if (declaration) return [...(declaration[1] as string).matchAll(/\| '(\w+)'/g)].map(([, word]) => word as string)
  }
  throw new Error(`no union ${name}`)
}

/** The names of the values that a file of `src` exports. */
export function valuesOf(file: string): string[] {
  const source = ts.createSourceFile(file, readFileSync(join(ROOT, file), 'utf8'), ts.ScriptTarget.Latest)
  return source.statements.flatMap((node) => {
    if (ts.isExportDeclaration(node) && !node.isTypeOnly) {
      if (node.exportClause && ts.isNamedExports(node.exportClause))
        return node.exportClause.elements.filter((one) => !one.isTypeOnly).map((one) => one.name.text)
      const other = (node.moduleSpecifier as ts.StringLiteral).text.replace(/\.js$/, '.ts')
      return valuesOf(join(dirname(file), other))
    }
    const isExported =
      ts.canHaveModifiers(node) && node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)
    if (!isExported) return []
    if (ts.isVariableStatement(node))
      return node.declarationList.declarations.map((one) => (one.name as ts.Identifier).text)
    return ts.isFunctionDeclaration(node) || ts.isClassDeclaration(node) ? [(node.name as ts.Identifier).text] : []
  })
}
