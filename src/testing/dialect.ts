import { defineDialect, text, tool, view } from '../dialects/define.ts'

/** Times that are numbers, as one of the documents has them. */
const epochMs = { out: (time: unknown) => Date.parse(String(time)) }

const ship = { shipId: 'id', shipName: 'title', launchedAt: ['created_at', epochMs] } as const

/** A seed as the tests need one: its own casing, its own error shape, its own globs. */
export const harbour = defineDialect({
  name: 'harbour',
  title: 'Harbour (test)',
  casing: 'camel',
  tools: [
    tool({
      name: 'listShips',
      native: 'task_list',
      description: 'All ships.',
      fields: { maxCount: { json: { type: 'integer', minimum: 1, maximum: 200 }, native: 'limit' } },
      answer: ({ tasks }) => ({ ships: tasks.map(view(ship)) }),
    }),
    tool({
      name: 'launchShip',
      native: 'task_create',
      description: 'A new ship.',
      fields: { shipName: { ...text(200), native: 'title' } },
      required: ['shipName'],
      answer: ({ task }, { args }) => ({ ...view<typeof task>(ship)(task), asked: args.shipName }),
    }),
    tool({
      name: 'retireShip',
      native: 'task_delete',
      description: 'Take a ship away.',
      fields: { shipId: { json: { type: 'string', maxLength: 64 }, native: 'task_id' } },
      required: ['shipId'],
      answer: { shipId: 'task_id' },
      unlisted: true,
    }),
    tool({
      name: 'whoAmI',
      native: 'agent_me',
      description: 'Who sails.',
      answer: { sailor: 'handle', rank: 'role' },
    }),
  ],
  roles: {
    worker: { allow: ['list*', 'whoAmI'], deny: [] },
    orchestrator: { allow: ['*'], deny: ['launch*'] },
  },
  codes: { PERMISSION_DENIED: 'NotYourShip', TOOL_NOT_FOUND: 'NoSuchOrder', INVALID_INPUT: 'BadOrder' },
  error: ({ tool, code, message }) => ({ failed: true, order: tool, errorCode: code, errorText: message }),
})

/** Shares the name `listShips` with the first, for something else. */
export const shipyard = defineDialect({
  name: 'shipyard',
  title: 'Shipyard (test)',
  casing: 'snake',
  tools: [
    tool({
      name: 'listShips',
      native: 'project_list',
      description: 'Ships under construction.',
      answer: { hulls: ({ projects }) => projects.length },
    }),
    tool({
      name: 'countHulls',
      native: 'project_list',
      description: 'How many there are.',
      answer: { count: ({ projects }) => projects.length },
    }),
    tool({
      name: 'task_get',
      native: 'project_list',
      description: 'A seed that happens to use a native name for something else.',
      answer: { mine: () => true },
    }),
  ],
  codes: {},
  error: ({ code }) => ({ code }),
})
