"""The embedded model's vocabulary: general words of English and Chinese only, nothing about any particular material."""

import re


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Words of one meaning. The first is the key; a text that has any of them has the meaning.
_MEANINGS = """
    price pricing cost fee tariff 定价 价格 费用 报价 单价 收费 售价 月费 年费 标价
    release version changelog 版本 发布
    review rating testimonial 评价 评论 点评 口碑
    feedback opinion 意见 反馈
    reason cause why because driver 原因 因为 由于 导致 成因 起因
    improve recommend suggest propose advice 改进 建议 改善 对策 措施 推荐
    customer client 客户 顾客
    user 用户
    ticket complaint 工单 投诉
    problem issue bug defect 问题 故障 缺陷
    risk 风险 隐患
    security 安全
    performance speed 性能 速度
    install setup deploy 安装 部署
    feature capability function 功能 特性
    support helpdesk 支持 客服
    revenue sales turnover 收入 营收 销售额
    market 市场
    discount rebate 折扣 优惠
    limit quota 限制 上限 配额
    number count 数量 人数 多少
    date when deadline 日期 何时
    year 年份
    founder founded founding 创立 成立 创办
    headquarters headquarter 总部
    employee staff headcount 员工
    configure configuration setting 配置 设置
    error exception 错误 报错 异常
    delete remove 删除 移除
    create add 创建 新建 新增
    license licence 许可证 许可
    contract 合同
    warranty guarantee 保修 质保
    delivery shipping 配送 交付 发货
    refund 退款
    build compile building 构建 编译 打包
    layout laid organise organised organize organized structure 组织 布局 目录结构
    test 测试
"""
CONCEPTS = tuple(_split(row) for row in _MEANINGS.strip().splitlines())

STOP_EN = frozenset(
    _split(
        """
    a an the and or of for to in on at by with from into over under about between across per as is are was
    were be been being it its this that these those their them they there then than so such our your his
    her we you he she i me my us what which where who whom whose how much do does did can could should would may
    might must will shall not no if each every all both any some other another more most least many few
    several one two three four five six seven eight nine ten last latest first recent current main major
    important key overall please also just only very really out up down have has had get give gives make
    makes take tell let show shows list lists find finds state stated states describe describes explain
    explains identify collect gather gathers report reports extract determine search summarise summarize
    summary compare compared comparison comparing contrast versus vs named analyse analyze analysis study
    examine investigate assess evaluate understand source sources quoted figure amount information details
    following based using use via regarding concerning against within without whether while during again
    look looking including happen happens after before e g etc ie
    """
    )
)

# What a set of groups is called; dropped when the groups themselves are the things compared.
CLASS_WORDS = frozenset(
    _split(
        """
    vendor vendors supplier suppliers company companies competitor competitors provider providers product
    products tool tools option options candidate candidates team teams project projects item items group
    groups folder folders 厂商 供应商 公司 产品 竞品 竞争对手 方案 项目 团队 工具 候选 对象 企业
    """
    )
)

# Longest first, for a pattern. Single characters stand here only if they rarely are part of a longer word.
STOP_ZH = _split(
    """
    怎么样 为什么 上一个 以及 并且 或者 对于 关于 我们 他们 它们 这些 那些 每个 各个 每家 各家 这家 多家 哪家 每款 各款 每位 一家 两家 三家 四家 五家 所有 全部 几个 几家 还有 什么 哪些 哪个 哪种 如何 怎么 怎样 是否 能否 可以 应该 需要 进行
    通过 根据 基于 之间 之中 上个 本次 去年 今年 季度 上月 本月 最近 过去 目前 当前 主要 重要 关键 相关 具体 详细 一下 有关 以下 找出 列出 查找 给出 说明 说清 描述 介绍 比较
    对比 汇总 总结 收集 了解 统计 分析 研究 调查 评估 梳理 整理 提出 撰写 制定 判断 得出 情况 资料 文档 文件 材料 信息 出处 须有 查询 内容 方面 两个 三个 四个 五个 要点 的 了
    和 与 或 请 我 你 您 该 这 那 各 每 是 也 都 被 吗 呢 吧
    """
)
# Characters that may hang on to the beginning or the end of a run without being part of it.
EDGE_ZH = ("在对从把将由给向为以并再就", "中里上下时等")

SCOPE_VERBS = _split(
    """
    analyse analyze study examine investigate assess evaluate research audit
    """
)
SCOPE_VERBS_ZH = _split(
    """
    分析 研究 调查 评估 梳理 调研 审视
    """
)
CONCLUDE_VERBS = _split(
    """
    recommend propose suggest advise decide conclude choose draft write prioritise prioritize
    """
)
CONCLUDE_VERBS_ZH = _split(
    """
    提出 建议 推荐 制定 撰写 判断 得出 给出建议 写出
    """
)
GATHER_VERBS = _split(
    """
    find list state give show identify collect gather extract look search determine describe explain
    summarise summarize compare contrast
    """
)
GATHER_VERBS_ZH = _split(
    """
    找出 列出 查找 给出 说明 比较 对比 汇总 总结 收集 了解 统计 描述 介绍
    """
)
SET_WORDS = _split(
    """
    compare comparison versus vs each every these all both 比较 对比 各 每 这些 所有
    """
)
# How many things an objective means.
COUNTS = {
    word: number
    for words in ("two three four five six seven eight nine ten eleven twelve", "两 三 四 五 六 七 八 九 十")
    for number, word in enumerate(_split(words), start=2)
}
# An objective with one of these wants everything that the material has on each thing.
BROAD = (
    *SCOPE_VERBS,
    *CONCLUDE_VERBS,
    *SCOPE_VERBS_ZH,
    *_split("overview strategy market 建议 推荐 市场 概况 全面"),
)

MONEY = re.compile(
    r"(?i)[$€£¥￥₹]\s?\d|\d[\d.,]*\s?(?:usd|eur|gbp|cny|rmb|jpy|chf|dollars?|euros?|pounds?|cents?|元|美元|欧元|万元|块钱)"
    r"|\b(?:usd|eur|gbp|cny|rmb|jpy|chf|us\$)\s?\d"
    r"|\d[\d.,]*\s*(?:/|per |a |each )\s*(?:user|seat|month|year|mo\b|yr\b)|\d[\d.,]*\s*(?:/|每)\s*(?:月|年|人|席)"
)
# A plan's rate is its price, though the sentence need not say so; what is saved or added is not.
TARIFF = re.compile(
    r"(?i)(?=.*(?:\b(?:plan|edition|tier|licen[cs]e|seat|subscription)s?\b|套餐|版|席位|订阅))(?!.*\b(?:saves?|saving|more|less|than)\b)"
    r"(?=.*(?:\b(?:per|a|each|every) (?:\w+ )?(?:user|seat|month|year)\b|/ ?(?:user|seat|month|mo|year)\b|每|/月|/年))"
)
DATE = re.compile(
    r"(?i)\b(?:1[6-9]|20)\d\d\b|(?:1[6-9]|20)\d\d\s*年|\d{1,2}\s*月|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d"
)
DIGIT = re.compile(
    r"\d|[一二两三四五六七八九十百千万]+(?:个|名|人|次|家|条)|\b(?:two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand)\b"
)
# What an answer to such a concept must show.
FIGURES: dict[str, re.Pattern[str]] = {"price": MONEY, "date": DATE, "year": DATE, "number": DIGIT}

# A sentence that says that it does not say.
NON_ANSWER = re.compile(
    r"(?i)\b(?:on request|upon request|contact (?:us|sales|our)|talk to (?:us|sales)|to be (?:announced|confirmed|decided|determined)"
    r"|tbd|tba|n/a|(?:not|never|isn't|aren't|hasn't been|haven't been) (?:yet |been |publicly )*"
    r"(?:published|disclosed|stated|known|available|announced|specified|listed|documented|public|given|provided|decided|determined|mentioned)"
    r"|undisclosed|unknown|unspecified|no (?:information|data|figures?|details?))\b"
    r"|面议|联系(?:我们|销售|客服)|咨询(?:销售|客服)|(?:未|没有|尚未|暂未|不)(?:公开|公布|披露|说明|提供|确定|透露|对外)|暂无|不详|待定|未知"
)
TROUBLE = re.compile(
    r"(?i)\b(?:slow|slower|missing|lack\w*|expensive|fail\w*|broken|crash\w*|stall\w*|lost|lose|difficult|confusing|delay\w*|late|complain\w*"
    r"|unable|cannot|can't|never|worse|problem\w*|poor|unreliable|limited|too (?:low|high|few|many|much)|not included|ignores?|steep|complaint)\b"
    r"|慢|太贵|缺|故障|失败|问题|投诉|无法|不能|没有|延迟|崩溃|不稳定|卡|丢失|中断|未解决|不支持|不满"
)
