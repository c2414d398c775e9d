import { codesLike, type Dialect } from '../kernel/dialect.ts'
import { CODES, type Code } from '../kernel/error.ts'

type Args = Record<string, unknown>

const NATIVE = Object.keys(CODES) as Code[]
const noArguments = { type: 'object', properties: {}, additionalProperties: false }

/** A seed as the tests need one: its own casing, its own error shape, its own globs. */
export const harbour: Dialect = {
  name: 'harbour',
  title: 'Harbour (test)',
  tools: [
    {
      name: 'listShips',
      native: 'task_list',
      description: 'All ships.',
      inputJson: { ...noArguments, properties: { maxCount: { type: 'integer', minimum: 1, maximum: 200 } } },
      toNative: ({ maxCount, ...rest }) => ({ ...rest, ...(maxCount === undefined ? {} : { limit: maxCount }) }),
      fromNative: ({ tasks }) => ({ ships: (tasks as Args[]).map(ship) }),
    },
    {
      name: 'launchShip',
      native: 'task_create',
      description: 'A new ship.',
      inputJson: { ...noArguments, properties: { shipName: { type: 'string', maxLength: 200 } }, required: ['shipName'] },
      toNative: ({ shipName, ...rest }) => ({ ...rest, title: shipName }),
      fromNative: ({ task }, { shipName }) => ({ ...ship(task as Args), asked: shipName }),
    },
    {
      name: 'retireShip',
      native: 'task_delete',
      description: 'Take a ship away.',
      inputJson: { ...noArguments, properties: { shipId: { type: 'string', maxLength: 64 } }, required: ['shipId'] },
      toNative: ({ shipId, ...rest }) => ({ ...rest, task_id: shipId }),
      fromNative: ({ task_id }) => ({ shipId: task_id }),
      unlisted: true,
    },
    {
      name: 'whoAmI',
      native: 'agent_me',
      description: 'Who sails.',
      inputJson: noArguments,
      toNative: (args) => args,
      fromNative: ({ handle, role }) => ({ sailor: handle, rank: role }),
    },
  ],
  roles: {
    worker: { allow: ['list*', 'whoAmI'], deny: [] },
    orchestrator: { allow: ['*'], deny: ['launch*'] },
  },
  codes: codesLike(NATIVE, { PERMISSION_DENIED: 'NotYourShip', TOOL_NOT_FOUND: 'NoSuchOrder', INVALID_INPUT: 'BadOrder' }),
  error: (body, name) => ({ failed: true, order: name, errorCode: harbour.codes[body.code], errorText: body.message }),
}

/** Shares the name `listShips` with the first, for something else. */
export const shipyard: Dialect = {
  name: 'shipyard',
  title: 'Shipyard (test)',
  tools: [
    {
      name: 'listShips',
      native: 'project_list',
      description: 'Ships under construction.',
      inputJson: noArguments,
      toNative: (args) => args,
      fromNative: ({ projects }) => ({ hulls: (projects as Args[]).length }),
    },
    {
      name: 'countHulls',
      native: 'project_list',
      description: 'How many there are.',
      inputJson: noArguments,
      toNative: (args) => args,
      fromNative: ({ projects }) => ({ count: (projects as Args[]).length }),
    },
    {
      name: 'task_get',
      native: 'project_list',
      description: 'A seed that happens to use a native name for something else.',
      inputJson: noArguments,
      toNative: (args) => args,
      fromNative: () => ({ mine: true }),
    },
  ],
  codes: codesLike(NATIVE, {}),
  error: (body) => ({ code: body.code }),
}

const ship = ({ id, title, created_at }: Args): Args => ({ shipId: id, shipName: title, launchedAt: Date.parse(created_at as string) })
